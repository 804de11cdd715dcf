"""Analyses plans of statements for a cluster, and keeps the analyses as long as the plans."""

from dataclasses import replace

from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_engine.join_orders import ordering
from caraway_engine.sessions import distribution
from caraway_engine.sessions.answered import AnsweredPlans
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.sessions.plans import KeptPlans, StatementPlan
from caraway_engine.sessions.registered import Registered
from caraway_engine.sessions.reruns import Reruns, is_repeatable, is_wide_listing
from caraway_engine.statements import viewing


class Analyses:
    """The analyses of a session's plans."""

    def __init__(
        self, registered: Registered, kept: KeptPlans, answered: AnsweredPlans, reruns: Reruns
    ) -> None:
        self._registered = registered
        self._kept = kept
        self._answered = answered
        self._reruns = reruns

    def analysis(self, plan: StatementPlan, statement: Statement) -> Analysis:
        """Return the analysis of a statement's plan as it is.

        Raises:
            QueryError: the plan cannot be optimized.
        """
        if (known := self._kept.analysis(plan)) is not None:
            return known
        optimized = plan.dataframe.logical_plan() if is_wide_listing(plan) else plan.optimized
        found = frozenset(each.name for each in statement.found or ())
        try:
            analysis = self._analysed(plan, optimized, found)
            if plan.effect.written is not None:
                analysis = distribution.writing(analysis, plan.effect.written)
            if analysis.plan is not None and self._registered.reads_remote(plan.facts):
                with viewing.limits_of(statement):
                    analysis = self._answered.refined(plan, analysis)
        except BaseException as exc:
            raise self._registered.translate(exc, planning=False) from exc
        self._kept.note_analysis(plan, analysis)
        return analysis

    def staged(self, plan: StatementPlan, analysis: Analysis) -> Analysis:
        """Return the analysis of a kept plan that runs in stages, with its joins in a good order.

        It is that of the plan as it is if facts suggest no other order, or if the plan cannot be
        divided in that order. Blocks while facts are read.
        """
        if not is_repeatable(plan) or is_wide_listing(plan):
            return analysis
        if (known := self._kept.staged(plan)) is None:
            known = self._in_order(plan) or analysis
            if rows := self._reruns.joined_rows(plan):
                known = replace(known, joined_rows=rows)
            self._kept.note_staged(plan, known)
        return known

    def _in_order(self, plan: StatementPlan) -> Analysis | None:
        ordered = self._reruns.ordered(plan)
        if ordered is self._reruns.optimized(plan):
            return None
        try:
            analysis = self._analysed(plan, ordered)
        except Exception as exc:  # noqa: BLE001 -- the engine raises plain exceptions
            ordering.note_kept(exc)
            return None
        return None if analysis.plan is None else analysis

    def _analysed(
        self, plan: StatementPlan, optimized: object, found: frozenset[TableName] = frozenset()
    ) -> Analysis:
        analysis = distribution.analyse(
            self._registered.contexts.main,
            plan.dataframe,
            plan.facts,
            is_product=plan.is_product,
            optimized=optimized,
            specs=self._registered.snapshot.tables,
            found=found,
        )
        return replace(analysis, tables=analysis.tables | plan.stored)
