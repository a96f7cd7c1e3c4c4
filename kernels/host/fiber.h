/* Fibers: a stack each, switched by saving the registers that a call must keep. About 2 ns on x86-64; without
 * assembly for the machine (or with HX_UCONTEXT) by ucontext, some hundred times slower.
 */
#ifndef SAPHIRA_HOST_FIBER_H
#define SAPHIRA_HOST_FIBER_H

#include <cstdint>

/* Saves the running fiber in *save and goes on with `load`. */
extern "C" void hx_switch(void **save, void *load) __asm__("hx_switch");

/* A fiber that will run entry() on the stack that ends at `top`; entry must not return. `keep`: memory for the
 * fallback's context, any place that lives as long as the fiber. */
void *fiber_make(uint8_t *bottom, uint8_t *top, void (*entry)());

#endif
