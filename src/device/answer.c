// What plug-ins answer, as statuses and as texts, and what every call to one
// needs: checks before it, the current device, and counts of what is out.
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

// --- the driver's words ----------------------------------------------------

// The buffer is cleared first, for plug-ins that write no text or no NUL.
const char *tarn__extension_words(const tarn_device_ext *ext, int id,
                                  C_Stream stream, tarn__device_words *out) {
  memset(out->text, 0, sizeof out->text);
  if (ext->error_text == NULL) return out->text;
  memcpy(out->text, ": ", sizeof ": ");
  ext->error_text(id, stream, out->text + 2, sizeof out->text - 2);
  out->text[sizeof out->text - 1] = '\0';
  if (out->text[2] == '\0') out->text[0] = '\0';
  return out->text;
}

tarn_status tarn__device_full(tarn_device *device, const char *where,
                              size_t size, C_Status result) {
  tarn__device_words words = {""};
  if (result == C_FAILED)
    (void)tarn__extension_words(device->ext, device->handle.id, NULL, &words);
  return tarn__fail(TARN_FULL, "%s: out of memory: %zu bytes were refused%s",
                    where, size, words.text);
}

// |stream| NULL: the thread's last call failed. |size| 0: none is in the text.
static tarn_status refuse(tarn_device *device, C_Stream stream,
                          const char *call, size_t size, tarn_status status,
                          int answer, const char *meaning) {
  tarn__device_words words;
  char of_size[40] = "";
  if (size != 0) snprintf(of_size, sizeof of_size, " of %zu bytes", size);
  return tarn__fail(
      status, "%s: %s%s answered %d (%s)%s", device->name, call, of_size,
      answer, meaning,
      tarn__extension_words(device->ext, device->handle.id, stream, &words));
}

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
  return refuse(device, stream, call, size, TARN_E_DEVICE, (int)result,
                meaning(result));
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
  return status == TARN_FULL || status == TARN_E_INVALID ||
         status == TARN_E_UNSUPPORTED || status == TARN_E_NOMEM ||
         status == TARN_E_DEVICE;
}

tarn_status tarn__extension_result(tarn_device *device, const char *slot,
                                   size_t size, tarn_status answer) {
  if (answer == TARN_OK) return TARN_OK;
  bool known = is_for_slots(answer);
  return refuse(device, NULL, slot, size, known ? answer : TARN_E_DEVICE,
                (int)answer,
                known ? tarn_status_name(answer) : "no answer of a slot");
}

// --- what is refused --------------------------------------------------------

tarn_status tarn__device_refuse(const tarn_device *device) {
  if (device == NULL) return tarn__fail(TARN_E_INVALID, "device: NULL");
  return tarn__fail(TARN_E_STATE, "%s was opened by the parent before a fork",
                    device->name);
}

tarn_status tarn__extension_check(const tarn_device *device,
                                  tarn_device_extension ability,
                                  const char *what) {
  TARN__TRY(tarn__device_check(device));
  if ((device->info.extensions & (uint32_t)ability) != 0) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED, "%s: has no %s", device->name, what);
}

// --- around calls -----------------------------------------------------------
// Here and not in device.c, which calls the files that need them.

tarn_status tarn__device_select(tarn_device *device) {
  return TARN__DEVICE_CALL(device, set_device, 0, (&device->handle));
}

void tarn__device_count(tarn_device *device, size_t *count, int change) {
  pthread_mutex_lock(&device->lock);
  if (change > 0) {
    ++*count;
  } else if (*count > 0) {
    // A caller that gives back too often must not block the close.
    --*count;
  }
  pthread_mutex_unlock(&device->lock);
}
