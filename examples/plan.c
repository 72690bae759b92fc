// Buffers whose lifetimes are known beforehand: where does each one go, and how
// much memory do they need?
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tarn/tarn.h>

// Three layers of a net, each step one of them, and a result that the last one
// makes in the place of its input.
static const tarn_plan_buffer buffers[] = {
    {.first = 0, .last = 2, .size = 6000, .alignment = 64},  // input
    {.first = 0, .last = 1, .size = 9000, .alignment = 64},  // scratch
    {.first = 1, .last = 3, .size = 8000, .alignment = 64},  // activations
    {.first = 2, .last = 4, .size = 8000, .alignment = 64},  // their sums
};
static const tarn_plan_pair in_place = {.giver = 2, .taker = 3};

enum { COUNT = sizeof buffers / sizeof buffers[0] };

int main(void) {
  tarn_plan_problem problem = {.struct_size = sizeof problem,
                               .buffers = buffers,
                               .count = COUNT,
                               .pairs = &in_place,
                               .pair_count = 1};
  tarn_plan_info info = {.struct_size = sizeof info};
  tarn_plan *plan = NULL;
  if (tarn_plan_solve(&problem, NULL, &plan) != TARN_OK ||
      tarn_plan_query(plan, &info) != TARN_OK) {
    fprintf(stderr, "plan: %s\n", tarn_last_error());
    return EXIT_FAILURE;
  }
  printf("%" PRIu64 " bytes, %s:", info.height,
         tarn_plan_answer_name(info.answer));
  for (size_t i = 0; i < COUNT; i++)
    printf(" %" PRIu64, tarn_plan_offsets(plan)[i]);
  printf("\n");
  tarn_plan_destroy(plan);
  return EXIT_SUCCESS;
}
