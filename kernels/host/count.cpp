/* 32-byte sectors per warp access, and the different ones of each argument. Lanes run one after the other here; on a GPU they run together. So accesses
 * are put together again: those of the same instruction, the same time round since the warp last met. */
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "state.h"

namespace {

struct Group {
  bool write;
  std::vector<uint64_t> sectors;
};

/* Per warp: how often each lane has been at an instruction, and what was touched there. */
struct Tally {
  std::unordered_map<uint64_t, std::vector<uint32_t>> times;
  std::unordered_map<uint64_t, Group> groups;
};

std::unordered_map<const Warp *, Tally> tallies;

}  // namespace

void count_access(Region *region, uint64_t address, uint32_t size, bool write, uint64_t pc) {
  const Thread *me = g->self;
  Tally &tally = tallies[me->warp];
  std::vector<uint32_t> &times = tally.times[pc];
  if (times.empty()) times.resize(32);
  Group &group = tally.groups[pc << 24 ^ times[me->lane]++];
  group.write = write;
  uint64_t first = region->is.base / 32;
  if (region->met.empty()) region->met.resize((region->is.base + region->is.size - 1) / 32 - first + 1);
  for (uint64_t sector = address / 32; sector <= (address + size - 1) / 32; sector++) {
    if (std::find(group.sectors.begin(), group.sectors.end(), sector) != group.sectors.end()) continue;
    group.sectors.push_back(sector);
    region->is.sectors++;
    region->is.distinct += !region->met[sector - first];
    region->met[sector - first] = true;
  }
}

void count_flush(Warp *warp) {
  auto at = tallies.find(warp);
  if (at == tallies.end()) return;
  for (const auto &[key, group] : at->second.groups)
    (group.write ? g->counters->write_sectors : g->counters->read_sectors) += group.sectors.size();
  tallies.erase(at);
}

void count_clear() { tallies.clear(); }
