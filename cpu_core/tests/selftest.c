/* Usage: selftest [SIZE]. Prints the checks and failures of each suite; exits with 1 on a failure.
 * SIZE multiplies the random cases; the environment variable SAPHIRA_TEST_SEED sets their seed. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "saphira.h"
#include "selftest.h"

static int64_t checks, failures;
static uint64_t state;
int64_t st_size = 1;

int st_check(int ok, const char *format, ...) {
  checks++;
  if (!ok && ++failures <= 20) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "failure %lld: ", (long long)failures);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
  }
  return ok;
}

int64_t st_failures(void) { return failures; }

uint64_t st_random(void) {
  uint64_t x = (state += 0x9E3779B97F4A7C15u);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint32_t st_below(uint32_t n) { return (uint32_t)((st_random() >> 32) * n >> 32); }

st_guard st_guarded(size_t n, int at_end) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (n + page - 1) / page * page;
  st_guard g;
  g.bytes = body + 2 * page;
  g.map = mmap(NULL, g.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (g.map == MAP_FAILED || (body && mprotect(g.map + page, body, PROT_READ | PROT_WRITE))) {
    perror("guarded memory");
    exit(2);
  }
  g.data = at_end ? g.map + page + body - n : g.map + page;
  return g;
}

void st_unguard(st_guard g) { munmap(g.map, g.bytes); }

static void run(const char *name, void (*suite)(void)) {
  int64_t c = checks, f = failures;
  suite();
  printf("%-12s %12lld checks %6lld failures\n", name, (long long)(checks - c), (long long)(failures - f));
  fflush(stdout);
}

int main(int argc, char **argv) {
  const char *seed = getenv("SAPHIRA_TEST_SEED");
  state = seed ? strtoull(seed, NULL, 0) : 20240607;
  if (argc > 1) st_size = atoll(argv[1]);
  printf("seed %llu, size %lld, instruction sets:", (unsigned long long)state, (long long)st_size);
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++)
    if (sa_isa_available(isa)) printf(" %s", sa_isa_name(isa));
  putchar('\n');
  run("classify", st_classify);
  run("pretok", st_pretok);
  run("normalize", st_normalize);
  run("encode", st_encode);
  run("prepare", st_prepare);
  run("consumers", st_consumers);
  printf("%-12s %12lld checks %6lld failures\n", "all", (long long)checks, (long long)failures);
  return failures != 0;
}
