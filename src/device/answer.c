// What plug-ins answer, as statuses and as texts.
//
//   sim:0: memory_copy_h2d of 4096 bytes answered 3 (C_ERROR: bad argument or
//   wrong use): 1024 bytes beyond the end of a block of 8192 bytes
//   └── by this file ─────────────────────────┘ └── by the driver ──────────┘
//
// The driver's words are asked for on the thread that has just been given the
// answer, before it calls the plug-in again.
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "device/plugin.h"

// --- the driver's words ----------------------------------------------------

typedef struct words {
  char text[TARN__TEXT_SIZE];  // ": " and the words; "" if there are none
} words;

// |stream| NULL: about the thread's last failed call. The buffer is cleared
// first, for plug-ins that write no text or no NUL.
static const char *ask_words(tarn_device *device, C_Stream stream, words *out) {
  memset(out->text, 0, sizeof out->text);
  if (device->ext->error_text == NULL) return out->text;
  memcpy(out->text, ": ", sizeof ": ");
  device->ext->error_text(device->handle.id, stream, out->text + 2,
                          sizeof out->text - 2);
  out->text[sizeof out->text - 1] = '\0';
  if (out->text[2] == '\0') out->text[0] = '\0';
  return out->text;
}

static const char *size_text(size_t size, char *out, size_t out_size) {
  out[0] = '\0';
  if (size != 0) snprintf(out, out_size, " of %zu bytes", size);
  return out;
}

enum { SIZE_TEXT = 40 };

// --- functions of the ABI --------------------------------------------------

static const char *meaning(C_Status result) {
  switch ((int)result) {
    case C_SUCCESS:
      return "C_SUCCESS";
    case C_WARNING:
      return "C_WARNING";
    case C_FAILED:
      return "C_FAILED: resource exhausted";
    case C_ERROR:
      return "C_ERROR: bad argument or wrong use";
    case C_INTERNAL_ERROR:
      return "C_INTERNAL_ERROR";
    default:
      return "no status of the ABI";
  }
}

static tarn_status read_answer(tarn_device *device, C_Stream stream,
                               const char *call, size_t size, C_Status result) {
  if (result == C_SUCCESS) return TARN_OK;
  if (result == C_WARNING) {
    tarn__log(TARN_LOG_WARN, "%s: %s answered C_WARNING", device->name, call);
    return TARN_OK;
  }
  if (result == TARN__C_UNSUPPORTED) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s: has no %s", device->name, call);
  }
  words driver;
  char of_size[SIZE_TEXT];
  return tarn__fail(TARN_E_DEVICE, "%s: %s%s answered %d (%s)%s", device->name,
                    call, size_text(size, of_size, sizeof of_size), (int)result,
                    meaning(result), ask_words(device, stream, &driver));
}

tarn_status tarn__device_result(tarn_device *device, const char *call,
                                size_t size, C_Status result) {
  return read_answer(device, NULL, call, size, result);
}

tarn_status tarn__device_queued(tarn_device *device, const char *call,
                                size_t size, C_Status result) {
  tarn_status status = tarn__device_result(device, call, size, result);
  return result == C_FAILED ? TARN_E_NOMEM : status;
}

tarn_status tarn__stream_result(tarn_stream *stream, const char *call,
                                C_Status result) {
  return read_answer(stream->device, stream->native, call, 0, result);
}

// --- slots of the extension ------------------------------------------------

static bool is_for_slots(tarn_status status) {
  switch (status) {
    case TARN_OK:
    case TARN_FULL:
    case TARN_E_INVALID:
    case TARN_E_UNSUPPORTED:
    case TARN_E_NOMEM:
    case TARN_E_DEVICE:
      return true;
    default:
      return false;
  }
}

tarn_status tarn__extension_result(tarn_device *device, const char *slot,
                                   size_t size, tarn_status answer) {
  if (answer == TARN_OK) return TARN_OK;
  words driver;
  char of_size[SIZE_TEXT];
  bool known = is_for_slots(answer);
  return tarn__fail(known ? answer : TARN_E_DEVICE,
                    "%s: %s%s answered %d (%s)%s", device->name, slot,
                    size_text(size, of_size, sizeof of_size), (int)answer,
                    known ? tarn_status_name(answer) : "no answer of a slot",
                    ask_words(device, NULL, &driver));
}

tarn_status tarn__extension_lacks(const tarn_device *device, const char *what) {
  return tarn__fail(TARN_E_UNSUPPORTED, "%s: has no %s", device->name, what);
}
