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
                               tarn__trace_pickle_type type,
                               tarn__trace_pickle_walk *out_walk) {
  size_t at = tarn__pickle_at(pickle, container);
  *out_walk = (tarn__trace_pickle_walk){0};
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
  *out_walk = tarn__pickle_walk(pickle, container);
  return TARN_OK;
}

static tarn_status read_number(const tarn__trace_pickle *pickle,
                               const tarn__trace_key *key,
                               tarn__trace_field *field) {
  bool negative = false;
  uint64_t magnitude = 0;
  size_t from = 0;
  size_t size = 0;
  size_t at = field->value.at;
  bool fits = tarn__pickle_int(pickle, field->value, &negative, &magnitude);
  if (fits && !negative) field->number = magnitude;
  if ((fits && !negative) || key->lenient) return TARN_OK;
  if (fits) {
    return tarn__pickle_corrupt(pickle, at, "'%s' is negative: -%llu",
                                key->name, (unsigned long long)magnitude);
  }
  tarn__pickle_argument(pickle, at, &from, &size);
  if (size > TARN__PICKLE_INT_MOST) {
    return tarn__pickle_corrupt(pickle, at, "'%s' is written in %zu bytes",
                                key->name, size);
  }
  return tarn__pickle_corrupt(pickle, at, "'%s' is beyond 64 bits", key->name);
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
  tarn__trace_pickle_walk walk;
  for (size_t i = 0; i < key_count; i++)
    out_fields[i] = (tarn__trace_field){0};
  TARN__TRY(tarn__record_enter(pickle, dict, TARN__DICT, &walk));
  while (tarn__walk_next(&walk, &key) && tarn__walk_next(&walk, &value)) {
    size_t i = tarn__pickle_find(pickle, key, keys, sizeof *keys, key_count);
    if (i == key_count) continue;
    TARN__TRY(read_field(pickle, value, &keys[i], &out_fields[i]));
  }
  return check_required(pickle, dict, keys, key_count, out_fields);
}
