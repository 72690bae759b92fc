// tarn.hpp, with exceptions and without.
#include "support/run.h"
#include "uses.h"

TEST_LOOP(uses, 8) {
  static cpp_use *const all[] = {cpp_handles_end_what_they_hold,
                                 cpp_failures_throw,
                                 cpp_blocks,
                                 cpp_accesses,
                                 cpp_containers,
                                 cpp_tables,
                                 cpp_results,
                                 cpp_accesses_with_results};
  const char *wrong = all[_i]();
  ck_assert_msg(wrong == NULL, "does not hold: %s", wrong);
}
