// exchange.h - the parts of tensors that may go to other libraries and come
// from them.
#ifndef TARN_MODEL_EXCHANGE_H_
#define TARN_MODEL_EXCHANGE_H_

#include "model/slots.h"
#include "tarn/model_file.h"

// Whether |part| is one of a model's tensor, and has a buffer.
//
// TARN_E_INVALID, TARN_E_STATE  as of tarn_tensor_to_dlpack.
TARN_MUST_CHECK tarn_status tarn__exchange_check(const tarn_tensor *tensor,
                                                 tarn_part part);

#endif  // TARN_MODEL_EXCHANGE_H_
