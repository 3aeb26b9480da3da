#include "net/regtable.h"
#include "unit/base/unit.h"

#define MANY 9000u

static struct fr_comm comm_a, comm_b;
static struct fr_net_mr mrs[MANY];

START_TEST(a_registration_is_taken_once)
{
	mrs[0].comm = &comm_a;
	ck_assert(!fr_regtable_take(&comm_a, &mrs[0]));
	fr_regtable_add(&mrs[0]);
	ck_assert(fr_regtable_take(&comm_a, &mrs[0]));
	ck_assert(!fr_regtable_take(&comm_a, &mrs[0]));
	fr_regtable_add(&mrs[0]);
	ck_assert(fr_regtable_take(&comm_a, &mrs[0]));
}
END_TEST

START_TEST(another_comm_cannot_take_it)
{
	mrs[0].comm = &comm_a;
	fr_regtable_add(&mrs[0]);
	ck_assert(!fr_regtable_take(&comm_b, &mrs[0]));
	ck_assert(!fr_regtable_take(NULL, &mrs[0]));
	ck_assert(fr_regtable_take(&comm_a, &mrs[0]));
}
END_TEST

/* Addresses that cannot be read. */
START_TEST(what_is_not_there_is_not_looked_at)
{
	const struct fr_comm *comm = (const struct fr_comm *)0x1000;

	ck_assert(!fr_regtable_take(comm, (struct fr_net_mr *)0x10));
	fr_regtable_add(&mrs[0]);
	ck_assert(!fr_regtable_take(comm, (struct fr_net_mr *)UINTPTR_MAX));
	ck_assert(fr_regtable_take(mrs[0].comm, &mrs[0]));
}
END_TEST

/* More than there are rows. */
START_TEST(many_are_taken_in_any_order)
{
	for (unsigned i = 0; i < MANY; i++) {
		mrs[i].comm = i % 2 == 0 ? &comm_a : &comm_b;
		fr_regtable_add(&mrs[i]);
	}
	for (unsigned i = 0; i < MANY; i++) {
		/* 7 and MANY have no divisor in common. */
		struct fr_net_mr *mr = &mrs[i * 7 % MANY];

		ck_assert(fr_regtable_take(mr->comm, mr));
	}
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert(!fr_regtable_take(mrs[i].comm, &mrs[i]));
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("regtable");

	tcase_add_test(t, a_registration_is_taken_once);
	tcase_add_test(t, another_comm_cannot_take_it);
	tcase_add_test(t, what_is_not_there_is_not_looked_at);
	tcase_add_test(t, many_are_taken_in_any_order);
	return unit_run(t, "net/regtable");
}
