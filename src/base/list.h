/*
 * Intrusive doubly linked list. A head is a node that points at itself when
 * the list is empty; a node not on a list points at itself as well, so that
 * deleting twice is harmless. Every call is O(1).
 */
#ifndef FR_BASE_LIST_H
#define FR_BASE_LIST_H

#include <stdbool.h>

#include "base/util.h"

struct fr_list {
	struct fr_list *next;
	struct fr_list *prev;
};

static inline void fr_list_init(struct fr_list *node)
{
	node->next = node;
	node->prev = node;
}

static inline bool fr_list_empty(const struct fr_list *head)
{
	return head->next == head;
}

static inline void fr_list_push(struct fr_list *head, struct fr_list *node)
{
	node->next = head;
	node->prev = head->prev;
	head->prev->next = node;
	head->prev = node;
}

static inline void fr_list_del(struct fr_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	fr_list_init(node);
}

/* Takes the first node off the list; NULL when the list is empty. */
static inline struct fr_list *fr_list_pop(struct fr_list *head)
{
	struct fr_list *node = head->next;

	if (node == head) {
		return NULL;
	}
	fr_list_del(node);
	return node;
}

#define fr_list_for_each(pos, head)                                            \
	for (struct fr_list *pos = (head)->next; pos != (head); pos = pos->next)

/* Allows the body to take @pos off its list. */
#define fr_list_for_each_safe(pos, head)                                       \
	for (struct fr_list *pos = (head)->next, *pos##_next = pos->next;      \
	     pos != (head); pos = pos##_next, pos##_next = pos->next)

#endif
