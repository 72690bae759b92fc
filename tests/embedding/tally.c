#include "support/run.h"
int main(void) {
  return run_tests();
}
SECONDS(10);
