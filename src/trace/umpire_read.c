// Stub.
#include "base/status.h"
#include "trace/readers.h"

bool tarn__umpire_sniff(const tarn__input *input) {
  (void)input;
  return false;
}

tarn_status tarn__umpire_read(const tarn__input *input,
                              tarn_trace **out_trace) {
  *out_trace = NULL;
  return tarn__fail(TARN_E_UNSUPPORTED, "%s: not read yet", input->name);
}
