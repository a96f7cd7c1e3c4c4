/* While a launch runs: faults of the processor and the time limit, as named faults. */
#ifndef SAPHIRA_HOST_SIGNALS_H
#define SAPHIRA_HOST_SIGNALS_H

#include <csetjmp>
#include <csignal>
#include <ctime>
#include <memory>

class Signals {
 public:
  explicit Signals(double seconds);
  ~Signals();
  Signals(const Signals &) = delete;
  Signals &operator=(const Signals &) = delete;

  sigjmp_buf jump; /* set it right after construction; a signal that ends the launch comes back there */

 private:
  struct sigaction before_[5];
  stack_t stack_before_;
  std::unique_ptr<char[]> stack_;
  timer_t timer_;
  bool timed_;
};

#endif
