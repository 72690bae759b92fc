// valgrind knows no pidfd_open before 3.21, and refuses it. Where this library
// is preloaded, a descriptor that is never ready stands for that of a process:
// nobody learns of an end by it, but ranks that go on need none.
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN long syscall(long number, ...);

// Of the calls that the library makes by number none has more.
SHOWN long syscall(long number, ...) {
  long (*real)(long, ...) = NULL;
  va_list list;
  va_start(list, number);
  long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
  long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
  va_end(list);
  if (number == SYS_pidfd_open) return eventfd(0, EFD_CLOEXEC);
  *(void **)&real = dlsym(RTLD_NEXT, "syscall");
  return real(number, a, b, c, d, e, f);
}
