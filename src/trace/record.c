// Dicts with known keys.
//
// Invariant: a container with mark 1 has been walked. Each container is walked
// at most once, so that the cost is linear in the file, however often the file
// refers to it.
#include "trace/snapshot.h"

#include "base/status.h"

static bool is_of(tarn__trace_pickle_value value,
                  tarn__trace_pickle_type type) {
  if (type == TARN__LIST && value.type == TARN__TUPLE) return true;
  return value.type == (uint32_t)type;
}

tarn_status tarn__record_enter(const tarn__trace_pickle *pickle,
                               tarn__trace_pickle_value container,
                               tarn__trace_pickle_type type) {
  size_t at = tarn__pickle_at(pickle, container);
  if (!is_of(container, type)) {
    return tarn__pickle_corrupt(pickle, at, "%s in place of %s",
                                tarn__value_type_name(container.type),
                                tarn__value_type_name(type));
  }
  tarn__trace_pickle_container *entered =
      tarn__pickle_container(pickle, container);
  if (entered->mark != 0 && entered->count != 0) {
    return tarn__pickle_corrupt(pickle, at, "%s occurs twice",
                                tarn__value_type_name(container.type));
  }
  entered->mark = 1;
  return TARN_OK;
}

// The index of |key| among |keys|, or |key_count|.
static size_t find_key(const tarn__trace_pickle *pickle,
                       tarn__trace_pickle_value key,
                       const tarn__trace_key *keys, size_t key_count) {
  return tarn__pickle_find(pickle, key, keys, sizeof *keys, key_count);
}

static tarn_status refuse_long(const tarn__trace_pickle *pickle,
                               const tarn__trace_key *key,
                               tarn__trace_pickle_value value) {
  size_t size = tarn__pickle_int_size(pickle, value);
  if (size > TARN__PICKLE_INT_MOST) {
    return tarn__pickle_corrupt(
        pickle, value.at, "'%s' is written in %zu bytes", key->name, size);
  }
  return tarn__pickle_corrupt(pickle, value.at, "'%s' is beyond 64 bits",
                              key->name);
}

static tarn_status read_number(const tarn__trace_pickle *pickle,
                               const tarn__trace_key *key,
                               tarn__trace_field *field) {
  bool negative = false;
  uint64_t magnitude = 0;
  bool fits = tarn__pickle_int(pickle, field->value, &negative, &magnitude);
  if (fits && !negative) field->number = magnitude;
  if ((fits && !negative) || key->lenient) return TARN_OK;
  if (!fits) return refuse_long(pickle, key, field->value);
  return tarn__pickle_corrupt(pickle, field->value.at,
                              "'%s' is negative: -%llu", key->name,
                              (unsigned long long)magnitude);
}

static tarn_status read_field(const tarn__trace_pickle *pickle,
                              tarn__trace_pickle_value value,
                              const tarn__trace_key *key,
                              tarn__trace_field *field) {
  size_t at = tarn__pickle_at(pickle, value);
  if (tarn__field_is_there(field)) {
    return tarn__pickle_corrupt(pickle, at, "'%s' occurs twice in one dict",
                                key->name);
  }
  if (!is_of(value, key->type)) {
    return tarn__pickle_corrupt(pickle, at, "'%s' is %s, not %s", key->name,
                                tarn__value_type_name(value.type),
                                tarn__value_type_name(key->type));
  }
  field->value = value;
  return key->type == TARN__INT ? read_number(pickle, key, field) : TARN_OK;
}

static tarn_status check_required(const tarn__trace_pickle *pickle,
                                  tarn__trace_pickle_value dict,
                                  const tarn__trace_key *keys, size_t key_count,
                                  const tarn__trace_field *fields) {
  for (size_t i = 0; i < key_count; i++) {
    if (!keys[i].required || tarn__field_is_there(&fields[i])) continue;
    return tarn__pickle_corrupt(pickle, tarn__pickle_at(pickle, dict),
                                "a dict without '%s'", keys[i].name);
  }
  return TARN_OK;
}

tarn_status tarn__record_read(const tarn__trace_pickle *pickle,
                              tarn__trace_pickle_value dict,
                              const tarn__trace_key *keys, size_t key_count,
                              tarn__trace_field *out_fields) {
  tarn__trace_pickle_value key;
  tarn__trace_pickle_value value;
  for (size_t i = 0; i < key_count; i++)
    out_fields[i] = (tarn__trace_field){0};
  tarn_status status = tarn__record_enter(pickle, dict, TARN__DICT);
  if (status != TARN_OK) return status;
  tarn__trace_pickle_walk walk = tarn__pickle_walk(pickle, dict);
  while (tarn__walk_next(&walk, &key) && tarn__walk_next(&walk, &value)) {
    size_t i = find_key(pickle, key, keys, key_count);
    if (i == key_count) continue;
    status = read_field(pickle, value, &keys[i], &out_fields[i]);
    if (status != TARN_OK) return status;
  }
  return check_required(pickle, dict, keys, key_count, out_fields);
}
