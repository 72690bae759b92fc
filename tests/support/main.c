// The main function of test programs that define none.
#include "support/run.h"

int main(int argc, char **argv) {
  return run_part(argc > 1 ? argv[1] : NULL);
}
