// The main function of test programs that define none.
#include "support/run.h"

int main(void) {
  return run_tests();
}
