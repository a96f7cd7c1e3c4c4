/* Memory: which of it a launch may touch, and in the check build whether each access is in bounds, aligned,
 * initialised and ordered against those of other threads. */
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include <link.h>

#include "state.h"

namespace {

struct Image { /* of the kernel's module: its constants and variables */
  uint64_t low = 0, high = 0;
} image;

int find_image(dl_phdr_info *info, size_t, void *) {
  auto kernel = reinterpret_cast<uint64_t>(g->kernel);
  uint64_t low = ~uint64_t{0}, high = 0;
  bool mine = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto &segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    uint64_t start = info->dlpi_addr + segment.p_vaddr;
    low = std::min(low, start);
    high = std::max(high, start + segment.p_memsz);
    mine |= kernel - start < segment.p_memsz;
  }
  if (mine) image = {low, high};
  return mine;
}

/* Finer cells, when an access is smaller than the element it was declared with. There is room for a cell per
 * byte from the start. */
void split(Cell *cells, uint32_t size, uint32_t &granule) {
  uint32_t n = size / granule;
  for (uint32_t i = n; i-- > 0;)
    for (uint32_t k = granule; k-- > 0;) cells[i * granule + k] = cells[i];
  granule = 1;
}

const char *kind_words(unsigned kind) {
  return kind & kStrong ? "atomic access" : kind & kWrite ? "write" : "read";
}

uint32_t thread_in_block(uint32_t entry) { return (entry - 1) & 1023; }

[[noreturn]] void report_race(unsigned kind, uint32_t other, bool other_wrote, uint32_t other_pc, uint64_t address,
                              const Where &where) {
  uint32_t entry = other & ~kAtomicBit;
  Dl_info info{};
  dladdr(reinterpret_cast<const void *>(g->kernel), &info);
  uint64_t pc = other_pc ? reinterpret_cast<uint64_t>(info.dli_fbase) + other_pc : 0;
  note_fault("race", g->self, where, pc, "%s of %s, not ordered after the %s%s by block %u, thread %u",
             kind_words(kind), describe(address).c_str(), other & kAtomicBit ? "atomic " : "",
             other_wrote ? "write" : "read", block_of(entry - 1), thread_in_block(entry));
  abort_thread();
}

bool conflicts(uint32_t entry, uint32_t clock, unsigned kind) {
  if (!entry) return false;
  uint32_t number = (entry & ~kAtomicBit) - 1;
  if (number == g->self->number || ((kind & kStrong) && (entry & kAtomicBit))) return false;
  return !known_to(g->self, number, clock);
}

/* Keeps two readers. One that the new reader knows of can go: who comes after the new one comes after it too.
 * Otherwise one of the new reader's own warp goes, so that readers of different warps stay. */
void note_read(Cell &cell, uint32_t me, uint32_t clock) {
  uint32_t number = g->self->number;
  for (int i = 0; i < 2; i++) {
    uint32_t other = (cell.reader[i] & ~kAtomicBit) - 1;
    if (!cell.reader[i] || other == number || known_to(g->self, other, cell.reader_clock[i])) {
      cell.reader[i] = me;
      cell.reader_clock[i] = clock;
      return;
    }
  }
  int i = warp_of((cell.reader[1] & ~kAtomicBit) - 1) == warp_of(number);
  cell.reader[i] = me;
  cell.reader_clock[i] = clock;
}

void check_cell(Cell &cell, unsigned kind, uint64_t address, const Where &where, uint32_t pc) {
  uint32_t me = (g->self->number + 1) | (kind & kStrong ? kAtomicBit : 0), clock = g->self->clock;
  if (cell.writer != me && conflicts(cell.writer, cell.writer_clock, kind))
    report_race(kind, cell.writer, true, cell.writer_pc, address, where);
  if (kind & kWrite) {
    for (int i = 0; i < 2; i++)
      if (conflicts(cell.reader[i], cell.reader_clock[i], kind))
        report_race(kind, cell.reader[i], false, cell.reader_pc, address, where);
    cell = {me, clock, pc, {0, 0}, {0, 0}, 0};
  } else {
    note_read(cell, me, clock);
    cell.reader_pc = pc;
  }
}

void check_cells(Cell *cells, uint32_t &granule, uint64_t size, uint64_t offset, uint32_t n, unsigned kind,
                 uint64_t address, const Where &where) {
  if (granule > 1 && ((offset | n) & (granule - 1))) split(cells, static_cast<uint32_t>(size), granule);
  uint32_t pc = where.pc ? static_cast<uint32_t>(where.pc - image.low) : 0;
  for (uint64_t i = offset / granule; i < (offset + n) / granule; i++) check_cell(cells[i], kind, address, where, pc);
}

void check_init(hx_u8 *init, uint32_t n, unsigned kind, uint64_t address, const Where &where) {
  if (kind & kRead)
    for (uint32_t i = 0; i < n; i++)
      if (!init[i])
        FAULT("uninitialised", where, "%s of %u bytes at %s, never written", kind_words(kind), n,
              describe(address + i).c_str());
  if (kind & kWrite) memset(init, 1, n);
}

Region *find_region(uint64_t address) {
  if (g->last && address - g->last->is.base < g->last->is.size) return g->last;
  for (Region &region : g->regions)
    if (address - region.is.base < region.is.size) return g->last = &region;
  return nullptr;
}

[[noreturn]] void report_outside(uint64_t address, uint32_t size, unsigned kind, const Where &where) {
  for (const Thread &t : g->threads)
    if (address - reinterpret_cast<uint64_t>(t.stack) < static_cast<uint64_t>(t.stack_top - t.stack))
      FAULT("foreign-stack", where, "%s of %u bytes in local memory of another thread", kind_words(kind), size);
  FAULT("out-of-bounds", where, "%s of %u bytes at %s", kind_words(kind), size, describe(address).c_str());
}

void access_shared(Block *block, uint64_t offset, uint32_t size, unsigned kind, uint64_t address, const Where &where) {
  for (Variable &v : block->variables) {
    if (offset - v.offset >= v.size) continue;
    if (offset + size > v.offset + v.size) break;
    check_init(block->init + offset, size, kind, address, where);
    check_cells(block->cells + v.offset, v.granule, v.size, offset - v.offset, size, kind, address, where);
    (kind & kWrite ? g->counters->shared_writes : g->counters->shared_reads)++;
    return;
  }
  report_outside(address, size, kind, where);
}

void access_global(uint64_t address, uint32_t size, unsigned kind, const Where &where) {
  Region *region = find_region(address);
  if (!region) {
    if (address - image.low >= image.high - image.low) report_outside(address, size, kind, where);
    return; /* tables of the module itself */
  }
  uint64_t offset = address - region->is.base;
  if (offset + size > region->is.size) report_outside(address, size, kind, where);
  bool write = kind & kWrite;
  if (write && region->is.read_only)
    FAULT("read-only", where, "%s of %s, a const argument", kind_words(kind), describe(address).c_str());
  if (g->check) {
    if (region->is.init) check_init(region->is.init + offset, size, kind, address, where);
    if (!region->is.read_only) {
      if (!region->cells) region->cells = static_cast<Cell *>(map_pages(region->is.size * sizeof(Cell)));
      check_cells(region->cells, region->granule, region->is.size, offset, size, kind, address, where);
    }
  }
  if (write) g->events++;
  if (kind & kStrong) return; /* counted as an atomic */
  (write ? g->counters->global_writes : g->counters->global_reads)++;
  (write ? g->counters->global_write_bytes : g->counters->global_read_bytes) += size;
  if (g->count) count_access(region, address, size, write, where.pc);
}

}  // namespace

std::string describe(uint64_t address) {
  char text[160];
  for (const Block &b : g->blocks) {
    uint64_t offset = address - reinterpret_cast<uint64_t>(b.arena);
    if (offset >= kArena) continue;
    const Variable *nearest = nullptr;
    for (const Variable &v : b.variables)
      if (v.offset <= offset && (!nearest || v.offset > nearest->offset)) nearest = &v;
    if (!nearest) return "shared memory before any variable";
    snprintf(text, sizeof text, "shared %s + %llu bytes (it has %u)%s", nearest->name,
             static_cast<unsigned long long>(offset - nearest->offset), nearest->size,
             &b == g->self->block ? "" : " of another block");
    return text;
  }
  /* The region with the address in it, else the nearest one within a page or so. */
  const Region *best = nullptr;
  uint64_t distance = 8192;
  for (const Region &r : g->regions) {
    uint64_t away = address < r.is.base ? r.is.base - address
                    : address < r.is.base + r.is.size ? 0 : address - (r.is.base + r.is.size) + 1;
    if (away < distance) best = &r, distance = away;
  }
  if (!best) {
    snprintf(text, sizeof text, "address %p, outside every argument", reinterpret_cast<void *>(address));
  } else {
    snprintf(text, sizeof text, "%s %c %llu bytes (it has %llu)", best->is.name,
             address < best->is.base ? '-' : '+',
             static_cast<unsigned long long>(address < best->is.base ? best->is.base - address : address - best->is.base),
             static_cast<unsigned long long>(best->is.size));
  }
  return text;
}

void check_access(uint64_t address, uint32_t size, unsigned kind, const Where &where) {
  Thread *me = g->self;
  if (address - reinterpret_cast<uint64_t>(me->stack) < static_cast<uint64_t>(me->stack_top - me->stack)) return;
  me->polling = kind & kStrong;
  if (g->countdown && --g->countdown == 0) {
    g->countdown = g->options->preempt;
    if (g->options->order == 2) g->countdown = 1 + static_cast<uint32_t>(random_next() % (2 * g->countdown));
    preempt();
  }
  if (!(kind & kUnaligned) && (size & (size - 1)) == 0 && (address & (size - 1)))
    FAULT("misaligned", where, "%s of %u bytes at %s", kind_words(kind), size, describe(address).c_str());
  Block *block = me->block;
  uint64_t offset = address - reinterpret_cast<uint64_t>(block->arena);
  if (offset < kArena) {
    if (g->check) access_shared(block, offset, size, kind, address, where);
    else if (!(kind & kStrong)) (kind & kWrite ? g->counters->shared_writes : g->counters->shared_reads)++;
  } else if (g->check || g->count) {
    access_global(address, size, kind, where);
  }
}

/* __ldg promises that nobody writes this memory while the kernel runs. The read itself is instrumented too. */
void hx_ldg(const void *p, int size, const char *file, int line) {
  auto address = reinterpret_cast<uint64_t>(p);
  const Region *region = find_region(address);
  if (!g->check || !region || !region->cells) return;
  uint64_t offset = address - region->is.base;
  for (uint64_t i = offset / region->granule; i * region->granule < offset + static_cast<uint32_t>(size); i++)
    if (i * region->granule < region->is.size && region->cells[i].writer)
      FAULT("read-only-path", (Where{file, line, 0}), "__ldg of %s, which this launch has written",
            describe(address).c_str());
}

/* ---- a launch's memory ---- */

bool memory_begin(hx_region *regions, int n) {
  dl_iterate_phdr(find_image, nullptr);
  g->regions.reserve(static_cast<size_t>(n));
  for (int i = 0; i < n; i++) {
    /* A power of two, or the element isn't one access anyway. */
    auto granule = static_cast<uint32_t>(regions[i].granule);
    if (granule & (granule - 1) || granule > 16 || regions[i].size % granule) granule = 1;
    g->regions.push_back({regions[i], granule, nullptr, {}});
  }
  return true;
}

void memory_end() {
  for (Region &region : g->regions)
    if (region.cells) unmap_pages(region.cells, region.is.size * sizeof(Cell));
  count_clear();
}

/* ---- shared memory: variables with red zones around them, garbage until written ---- */

void shared_begin(Block *block) {
  if (g->check) {
    memset(block->init, 0, block->used);
    memset(block->cells, 0, block->used * sizeof(Cell));
  }
  block->used = kRedZone;
  block->static_bytes = 0;
  block->variables.clear();
  block->published.clear();
}

static void *add_variable(Block *block, int id, uint64_t size, int align, int granule, const char *name) {
  auto a = static_cast<uint32_t>(align), element = static_cast<uint32_t>(granule);
  uint32_t offset = (block->used + a - 1) & ~(a - 1);
  if (element & (element - 1) || element > 16 || size % element) element = 1;
  if (id >= 0) block->static_bytes += static_cast<uint32_t>(size);
  const Where &where = g->self->where;
  if (block->static_bytes > kStaticLimit)
    FAULT("shared-memory", where, "%u bytes of static shared memory; there are %u", block->static_bytes, kStaticLimit);
  if (block->static_bytes + g->options->shared_bytes > kSharedLimit)
    FAULT("shared-memory", where, "%u bytes of static and %u of dynamic shared memory; a block has %u",
          block->static_bytes, g->options->shared_bytes, kSharedLimit);
  block->variables.push_back({id, name, offset, static_cast<uint32_t>(size), element});
  block->used = offset + static_cast<uint32_t>(size) + kRedZone;
  memset(block->arena + offset - kRedZone, 0xA5, size + 2 * kRedZone);
  return block->arena + offset;
}

void *hx_shared(int id, hx_u64 size, int align, int granule, const char *name, int) {
  Block *block = g->self->block;
  for (const Variable &v : block->variables)
    if (v.id == id && v.size == size) return block->arena + v.offset;
  return add_variable(block, id, size, align, granule, name);
}

void *hx_shared_dynamic(int align, int granule) {
  Block *block = g->self->block;
  for (const Variable &v : block->variables)
    if (v.id == -1) return block->arena + v.offset;
  return add_variable(block, -1, g->options->shared_bytes, std::max(align, 16), granule, "(dynamic)");
}
