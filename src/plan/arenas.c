#include "plan/arenas.h"
tarn_status tarn__plan_arenas_fill(tarn__plan_call *call, const tarn__plan_fill *fill, tarn_plan *plan) { (void)call,(void)fill,(void)plan; return TARN_OK; }
