"""A project whose own tests are run by tests: they write into test tables, and reach no other one."""

from tests.deep import examples

#: How many tests write the same keys.
MANY = examples(30, 200)
#: How many of them each of eight test classes has.
OF_A_CLASS = examples(8, 25)
