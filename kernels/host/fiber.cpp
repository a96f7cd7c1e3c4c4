#include "fiber.h"

#if defined(__x86_64__) && !defined(HX_UCONTEXT)

__asm__(R"(
.text
.globl hx_switch
.type hx_switch, @function
hx_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size hx_switch, .-hx_switch
)");

void *fiber_make(uint8_t *, uint8_t *top, void (*entry)()) {
  auto *sp = reinterpret_cast<uint64_t *>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15});
  *--sp = 0; /* entry's return address; leaves the stack aligned as a call would */
  *--sp = reinterpret_cast<uint64_t>(entry);
  for (int i = 0; i < 6; i++) *--sp = 0;
  return sp;
}

#elif defined(__aarch64__) && !defined(HX_UCONTEXT)

__asm__(R"(
.text
.globl hx_switch
.type hx_switch, %function
hx_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size hx_switch, .-hx_switch
)");

void *fiber_make(uint8_t *, uint8_t *top, void (*entry)()) {
  auto *sp = reinterpret_cast<uint64_t *>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15}) - 20;
  for (int i = 0; i < 20; i++) sp[i] = 0;
  sp[11] = reinterpret_cast<uint64_t>(entry); /* x30 */
  return sp;
}

#else

#include <ucontext.h>

#include <new>

/* The context of a fiber lies at its stack's bottom; a running fiber's own one is made when it is left. */
extern "C" void hx_switch(void **save, void *load) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t *>(load));
}

void *fiber_make(uint8_t *bottom, uint8_t *top, void (*entry)()) {
  auto *context = new (reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(bottom) + 63) & ~uintptr_t{63}))
      ucontext_t;
  auto *stack = reinterpret_cast<uint8_t *>(context + 1);
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = static_cast<size_t>(top - stack);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

#endif
