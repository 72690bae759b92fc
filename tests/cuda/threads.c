// Four threads on one device over the stand-in.
#include "over.h"
#include "support/crowd.h"

TEST_LOOP(all_at_once, OVER_KINDS) {
  over_begin(_i);
  crowd_use("cuda:0");
  over_assert_clean(over_kinds[_i].name, 0);
}
