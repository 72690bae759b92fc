// A library for programs of Python: a call that never returns, and that
// allocates while Python waits for it or ends without it.
#include <stdlib.h>

enum { LARGE = 3000000 };  // as python_victim.py has it

__attribute__((visibility("default"))) void record_churn(void);

void record_churn(void) {
  for (;;) {
    void *volatile had = malloc(LARGE);
    free(had);
  }
}
