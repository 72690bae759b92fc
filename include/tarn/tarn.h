// tarn.h - all of Tarn for programs that use it. Plug-ins include device_abi.h
// and device_ext.h.
#ifndef TARN_TARN_H_
#define TARN_TARN_H_

#include "tarn/account.h"
#include "tarn/alloc.h"
#include "tarn/arena.h"
#include "tarn/base.h"
#include "tarn/cache.h"
#include "tarn/capture.h"
#include "tarn/comm.h"
#include "tarn/device.h"
#include "tarn/dlpack.h"
#include "tarn/embedding.h"
#include "tarn/layout.h"
#include "tarn/misuse.h"
#include "tarn/model.h"
#include "tarn/model_file.h"
#include "tarn/model_run.h"
#include "tarn/plan.h"
#include "tarn/plan_csv.h"
#include "tarn/pool.h"
#include "tarn/range.h"
#include "tarn/rows.h"
#include "tarn/safetensors.h"
#include "tarn/share.h"
#include "tarn/sleep.h"
#include "tarn/snapshot.h"
#include "tarn/strategy.h"
#include "tarn/synced.h"
#include "tarn/table.h"
#include "tarn/trace.h"
#include "tarn/trace_build.h"
#include "tarn/trace_write.h"
#include "tarn/traffic.h"
#include "tarn/whole.h"

#endif  // TARN_TARN_H_
