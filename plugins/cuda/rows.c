// Gather and scatter by the kernels of rows.cu, queued or at once.
//
//   begin ──> where faults are noted ──> launches (rows_plan.c) ──> end
//
// An address is used as it is: kernels reach memory of the device, mapped
// ranges, managed memory, and host memory that is pinned or registered. Bad
// indices are found by the kernels, and told by queue.c.
#include "common/rows.h"
#include "base/convert.h"
#include "base/status.h"
#include "gpu.h"
#include "rows_plan.h"

static tarn_status check(tarn__rows_action action, const tarn_rows *rows) {
  if (rows == NULL) return tarn__text_fail(TARN_E_INVALID, "rows is NULL");
  if (tarn__rows_are_newer(rows)) {
    return tarn__text_fail(TARN_E_UNSUPPORTED, "unknown flags 0x%x of rows",
                           (unsigned)rows->flags);
  }
  if (action == TARN__ROWS_SCATTER_ADD &&
      !tarn__convert_can_add(rows->table_dtype)) {
    return tarn__text_fail(TARN_E_INVALID, "elements of %s cannot be added",
                           tarn_dtype_name(rows->table_dtype));
  }
  return TARN_OK;
}

static unsigned launch(void *context, const tarn__cuda_launch *l) {
  const tarn__cuda_work *work = context;
  void *arguments[] = {l->arguments};
  return tarn__cuda_driver_get()->LaunchKernel(
      work->device->kernels[l->kernel][l->many], l->blocks, 1, 1, l->threads, 1,
      1, 0, work->stream, arguments, NULL);
}

// An error of the driver's is none of the caller's.
static tarn_status outcome_of(C_Status status, tarn__cuda_result error) {
  tarn_status answer = tarn__cuda_answer(status);
  return error != TARN__CU_SUCCESS && answer == TARN_E_INVALID ? TARN_E_DEVICE
                                                               : answer;
}

static tarn_status queue_rows(tarn__rows_action action,
                              tarn__cuda_device *device, C_Stream stream,
                              const tarn_rows *rows) {
  tarn__cuda_result error = TARN__CU_SUCCESS;
  CUdeviceptr fault = 0;
  uint64_t serial = 0;
  tarn__cuda_work work;
  TARN__TRY(tarn__cuda_answer(tarn__cuda_begin(device, stream, &work)));
  C_Status status = tarn__cuda_rows_note(&work, &fault, &serial);
  if (status == C_SUCCESS) {
    error = tarn__cuda_rows_plan(action, rows, device->units, fault, serial,
                                 launch, &work);
  }
  C_Status outcome = tarn__cuda_end(&work, "cuLaunchKernel", error);
  return outcome_of(status != C_SUCCESS ? status : outcome, error);
}

static tarn_status move_rows(tarn__rows_action action, int id, C_Stream stream,
                             const tarn_rows *rows) {
  tarn__cuda_device *device = NULL;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_ROWS, &device));
  TARN__TRY(check(action, rows));
  if (rows->index_count == 0) return TARN_OK;
  return queue_rows(action, device, stream, rows);
}

tarn_status tarn__cuda_gather(int id, void *stream, const tarn_rows *rows) {
  return move_rows(TARN__ROWS_GATHER, id, stream, rows);
}

tarn_status tarn__cuda_scatter(int id, void *stream, const tarn_rows *rows) {
  return move_rows(TARN__ROWS_SCATTER, id, stream, rows);
}

tarn_status tarn__cuda_scatter_add(int id, void *stream,
                                   const tarn_rows *rows) {
  return move_rows(TARN__ROWS_SCATTER_ADD, id, stream, rows);
}
