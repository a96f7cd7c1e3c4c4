/* What a kernel module, the host executor's runtime and Python agree on. No library header: kernels see it.
 *
 * A module is one rewritten .cu file as a shared library; it calls the hx_* functions below, which the
 * runtime defines. Python (saphira_gpu/devices/host.py) mirrors the structs with ctypes, in this order.
 */
#ifndef SAPHIRA_HOST_ABI_H
#define SAPHIRA_HOST_ABI_H

typedef unsigned char hx_u8;
typedef unsigned int hx_u32;
typedef unsigned long long hx_u64;

/* A kernel's parameter. kind: p pointer, i signed, u unsigned, f float, b bool, s struct; of the pointee
 * likewise, or v for void. Sizes in bytes. */
struct hx_param {
  int kind, size, pointee_kind, pointee_size, is_const;
};

struct hx_kernel {
  const char *name;
  void (*call)(void *const *args);
  const hx_param *params;
  int n_params, max_threads; /* of __launch_bounds__, 0 without */
};

/* Memory that a launch may touch. init: a byte for each byte, 1 = written; null = all of it is. granule:
 * bytes of an element, for the race check. sectors: what the launch has added to those of hx_counters here;
 * distinct: how many different ones these were. */
struct hx_region {
  const char *name; /* for messages */
  hx_u64 base, size;
  hx_u8 *init;
  int granule, read_only;
  hx_u64 sectors, distinct;
};

struct hx_options {
  hx_u32 grid[3], block[3];
  hx_u32 shared_bytes;
  hx_u32 order;    /* 0 forward, 1 reverse, 2 random */
  hx_u64 seed;
  hx_u32 resident; /* blocks at a time */
  hx_u32 preempt;  /* accesses between forced switches; 0: none */
  hx_u32 check, count;
  hx_u32 stall_cycles;
  hx_u32 stack_bytes;
  double seconds;
};

/* Sums over one launch. Accesses, bytes and sectors only from instrumented builds. A collective or a barrier
 * counts once per group of lanes that took part together. */
struct hx_counters {
  hx_u64 global_reads, global_writes, global_read_bytes, global_write_bytes;
  hx_u64 read_sectors, write_sectors; /* of 32 bytes, distinct within a warp's access */
  hx_u64 shared_reads, shared_writes;
  hx_u64 global_atomics, shared_atomics, strong_loads, strong_stores; /* strong: ld_acquire and its kin */
  hx_u64 collectives, barriers, fences, switches;
};

/* The first thing that went wrong. name: empty if nothing did. pc and other_pc: offsets into the module, 0 if
 * unknown; file and line, where the call itself told them. */
struct hx_fault {
  char name[32];
  char text[480];
  char file[256];
  int line;
  hx_u32 block[3], thread[3];
  hx_u64 pc, other_pc;
};

enum { HX_SYNCWARP, HX_SHFL, HX_SHFL_UP, HX_SHFL_DOWN, HX_SHFL_XOR, HX_BALLOT, HX_ANY, HX_ALL, HX_MATCH_ANY,
       HX_MATCH_ALL, HX_REDUCE_ADD, HX_REDUCE_MIN, HX_REDUCE_MAX, HX_REDUCE_MIN_SIGNED, HX_REDUCE_MAX_SIGNED,
       HX_REDUCE_AND, HX_REDUCE_OR, HX_REDUCE_XOR };
enum { HX_BARRIER, HX_BARRIER_COUNT, HX_BARRIER_AND, HX_BARRIER_OR };
enum { HX_ADD, HX_EXCH, HX_CAS, HX_MIN, HX_MAX, HX_MIN_SIGNED, HX_MAX_SIGNED, HX_AND, HX_OR, HX_XOR, HX_INC,
       HX_DEC, HX_ADD_FLOAT };
enum { HX_RELAXED, HX_ACQUIRE, HX_RELEASE };

struct hx_xyz {
  unsigned int x, y, z;
};

extern "C" {
/* Fixed for the life of a thread, hence const: the compiler may keep them. */
hx_xyz hx_thread_index(void) __attribute__((const));
hx_xyz hx_block_index(void) __attribute__((const));
hx_xyz hx_block_size(void) __attribute__((const));
hx_xyz hx_grid_size(void) __attribute__((const));

hx_u64 hx_warp(int op, hx_u32 mask, hx_u64 value, int lane, int width, const char *file, int line);
hx_u32 hx_active(const char *file, int line);
int hx_barrier(int op, int predicate, const char *file, int line);
void hx_fence(int block_only);
hx_u64 hx_atomic(int op, void *p, hx_u64 value, hx_u64 compare, int size, const char *file, int line);
hx_u64 hx_load(const void *p, int size, int order, const char *file, int line);
void hx_store(void *p, hx_u64 value, int size, int order, const char *file, int line);
void hx_ldg(const void *p, int size, const char *file, int line);
void hx_sleep(const char *file, int line);
void hx_trap(const char *what, const char *file, int line) __attribute__((noreturn));
/* The block's copy of a __shared__ variable; id: its number in the file. */
void *hx_shared(int id, hx_u64 size, int align, int granule, const char *name, int line);
void *hx_shared_dynamic(int align, int granule);

/* Of hx_param, hx_kernel, hx_region, hx_options, hx_counters, hx_fault: Python compares them with its own. */
extern const int hx_struct_sizes[6];

int hx_launch(const hx_kernel *kernel, const hx_options *options, void *const *args, hx_region *regions,
              int n_regions, hx_counters *counters, hx_fault *fault);
}

#endif
