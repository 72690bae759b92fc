// The walker of a buffer's runs of bytes: recomputes all that spans.c keeps.
#include "synced/spans.h"
#include "synced/timelines.h"

static const tarn__synced_span *leftmost(const tarn__synced_span *span) {
  while (span != NULL && span->left != NULL)
    span = span->left;
  return span;
}

// The next one in the tree.
static const tarn__synced_span *behind(const tarn__synced_span *span) {
  if (span->right != NULL) return leftmost(span->right);
  while (span->parent != NULL && span->parent->right == span)
    span = span->parent;
  return span->parent;
}

static bool is_child(const tarn__synced_span *child,
                     const tarn__synced_span *parent) {
  return child == NULL ||
         (child->parent == parent && child->priority <= parent->priority);
}

static bool is_in_use(const tarn__synced_span *span) {
  return span->readers > 0 || span->writer != NULL;
}

static bool is_twice(const tarn__synced_use *use) {
  const tarn__synced_use *later = use->next;
  while (later != NULL &&
         !(later->timeline == use->timeline && later->side == use->side &&
           later->writes == use->writes &&
           (use->timeline != NULL || later->number == use->number)))
    later = later->next;
  return later != NULL;
}

static const char *check_uses(const tarn__synced_span *span) {
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    if (is_twice(use)) return "a use is there twice";
    if (use->timeline != NULL && use->number > use->timeline->issued)
      return "a use has a position that its timeline has not";
    if (use->timeline != NULL && use->timeline->uses == 0)
      return "a timeline does not know of a use";
  }
  return NULL;
}

static const char *check_span(const tarn__synced_span *span) {
  const tarn__synced_span *prev = span->prev;
  if (span->start >= span->end) return "a span is empty";
  if (span->start != (prev != NULL ? prev->end : 0)) return "there is a gap";
  if (prev != NULL && prev->next != span) return "the list is torn";
  if (!is_child(span->left, span) || !is_child(span->right, span))
    return "the tree is no heap, or torn";
  if (span->readers > 0 && span->writer != NULL)
    return "a span is read and written";
  if (prev != NULL && is_in_use(prev) != is_in_use(span) && span->pins == 0)
    return "an access ends where no pin is";
  return check_uses(span);
}

static const char *check_spares(const tarn__synced_spans *spans) {
  size_t count = 0;
  for (const tarn__synced_span *s = spans->spare_spans; s != NULL; s = s->next)
    count++;
  if (count != spans->spare_span_count) return "spare spans are miscounted";
  count = 0;
  for (const tarn__synced_use *u = spans->spare_uses; u != NULL; u = u->next)
    count++;
  return count == spans->spare_use_count ? NULL : "spare uses are miscounted";
}

const char *tarn__spans_check(const tarn__synced_spans *spans) {
  const tarn__synced_span *span = leftmost(spans->root);
  const char *wrong = check_spares(spans);
  size_t count = 0;
  size_t end = 0;
  if (span != spans->first) return "the first of the tree is not the list's";
  if (span != NULL && span != &spans->whole) return "the first is not the own";
  for (; span != NULL && wrong == NULL; span = behind(span)) {
    wrong = check_span(span);
    if (wrong == NULL && behind(span) != span->next)
      wrong = "tree and list differ";
    end = span->end;
    count++;
  }
  if (wrong != NULL) return wrong;
  if (end != spans->size) return "the last does not end at the end";
  return count == spans->count ? NULL : "spans are miscounted";
}
