#include "plan/conflict.h"
tarn_status tarn__plan_find_conflict(tarn__plan_call *call, const tarn_plan_problem *problem, tarn_plan *plan) { (void)call,(void)problem,(void)plan; return TARN_OK; }
