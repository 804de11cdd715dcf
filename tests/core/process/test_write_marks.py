"""A commit has the mark that its context was given, and else one of its own."""

from contextvars import copy_context

from caraway_core.process import write_marks


def test_a_mark_is_of_the_context_that_it_was_given_in() -> None:
    context = copy_context()
    mark = context.run(write_marks.give)
    assert context.run(write_marks.current) == mark
    assert write_marks.current() not in (mark, write_marks.current())
    assert context.run(write_marks.give) != mark
