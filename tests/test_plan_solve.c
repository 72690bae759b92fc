#include "test_plan_kit.h"
int main(void) {
  return 0;
}
