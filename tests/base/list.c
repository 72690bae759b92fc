// The intrusive list.
#include <stdlib.h>
#include <string.h>

#include "support/run.h"

typedef struct item {
  int value;
  tarn_list node;
} item;

static item *item_of(tarn_list *node) {
  return tarn_list_entry(node, item, node);
}

static int sum(const tarn_list *head) {
  int total = 0;
  tarn_list *node = NULL;
  tarn_list_for_each (node, head)
    total = total * 10 + item_of(node)->value;
  return total;
}

TEST(add_puts_first_and_add_tail_last) {
  tarn_list head;
  item items[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
  tarn_list_init(&head);
  ck_assert(tarn_list_empty(&head));
  tarn_list_add(&head, &items[1].node);
  tarn_list_add(&head, &items[0].node);
  tarn_list_add_tail(&head, &items[2].node);
  ck_assert(!tarn_list_empty(&head));
  ck_assert_int_eq(sum(&head), 123);
}

TEST(del_twice_does_no_harm) {
  tarn_list head;
  item items[2] = {{.value = 1}, {.value = 2}};
  tarn_list_init(&head);
  tarn_list_add_tail(&head, &items[0].node);
  tarn_list_add_tail(&head, &items[1].node);
  tarn_list_del(&items[0].node);
  tarn_list_del(&items[0].node);
  ck_assert_int_eq(sum(&head), 2);
  tarn_list_del(&items[1].node);
  ck_assert(tarn_list_empty(&head));
}

TEST(the_safe_walk_may_delete) {
  tarn_list head;
  item items[9];
  tarn_list *node = NULL;
  tarn_list *spare = NULL;
  tarn_list_init(&head);
  for (int i = 0; i < 9; i++) {
    items[i].value = i;
    tarn_list_add_tail(&head, &items[i].node);
  }
  tarn_list_for_each_safe (node, spare, &head) {
    if (item_of(node)->value % 2 == 0) tarn_list_del(node);
  }
  ck_assert_int_eq(sum(&head), 1357);
}
