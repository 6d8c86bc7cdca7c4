"""English verbs of which titles are made, and their gerunds. The list is closed."""

from __future__ import annotations

import re

from abridge.summarizers.extractive.words import words_of

VERBS = words_of(
    "abstract accept account adapt address adjust adopt align allow analyse analyze answer"
    " append apply approach approximate argue arrange ask assess assign avoid back backfill"
    " balance batch benchmark blend block bound break bring build bypass cache calculate"
    " calibrate call cancel catch categorize centralize change characterize check choose cite"
    " clarify clean clear close coerce collect combine commit compare compile compose compress"
    " compute configure confirm connect consider construct continue convert convey cook cool"
    " coordinate copy correct count cover craft create cross cross-check cut deal debug decide"
    " decode decouple deduce deduplicate defer define delay delete deliver deny derive describe"
    " design detail detect determine devise diagnose differentiate disable discuss distinguish"
    " divide double double-check downgrade draft draw drink drop eat edit elaborate eliminate"
    " emphasize enable encode encourage end enforce enumerate escape establish estimate evaluate"
    " examine expand explain explore express extend extract factor factorize favor favour figure"
    " fill filter find fit fix flatten flush follow force format formulate gather generate grant"
    " graph group grow guard guess guide handle help hide highlight hold identify illustrate"
    " implement import improve incorporate increase infer inform initialize inline inspect"
    " install integrate interpret intersect introduce invent invert investigate invoke isolate"
    " iterate join justify keep learn leave light limit link list load locate log look lower"
    " maintain make manage map mark match maximize measure merge migrate minimize mix mock model"
    " modify monitor move multiply narrow normalize observe offer open opt optimize order"
    " organize outline override pair parse pass patch pause pay perform pick pin place plan play"
    " plot plug ponder predict prefer prepare present preserve prevent print prioritize produce"
    " profile propose protect prove provide prune pull push put query queue quote raise rank"
    " read rebuild recap recommend reconcile reconsider reconstruct recover recreate redesign"
    " redirect reduce refactor refer refine reflect refresh refuse regenerate register reject"
    " relate release rely remind remove rename render reorder repair repeat replace report"
    " represent reproduce request require rerun reset resolve respect respond restore restrict"
    " restructure retrieve retry return reuse reveal reverse revert review revise rewrite round"
    " route rule run sample save scale scan schedule scroll search secure select send separate"
    " serialize serve set shape share sharpen shift shorten simplify simulate sit sketch skip"
    " soften solve sort specify split stabilize standardize stick stop store stream strengthen"
    " strip structure study submit substitute subtract sum summarise summarize support surface"
    " swap switch tackle talk teach tell test throttle tie tighten time toggle trace track"
    " transform translate transport traverse treat trim tune turn uncover understand undo unify"
    " untangle update upgrade validate verify view visit visualize walk warn watch weigh wire"
    " work wrap write zoom"
)
"""Verbs that say what a stretch of reasoning is about, and those of handling and speaking."""

BASES = VERBS | words_of(
    "add affect appear arrive become begin belong cause come contain contribute cost decrease"
    " depend develop die exist expel fail fall feel forget form get give go happen have hit"
    " ignore involve kill know lack lead let lie live lose matter mean melt mention need note"
    " occur own reach remain result rise say see seem show sink speak stand start state stay"
    " survive take tend travel use win"
)
"""The same, and others that a clause may have."""

_DOUBLING = re.compile(
    r"(?:[^aeiou]+|qu)[aeiou][bdglmnprt]|begin|commit|debug|defer|forget|format|infer|input|occur"
    r"|output|prefer|refer|rerun|reset|submit"
)
"""Verbs whose last consonant is doubled."""


def gerund_of(verb: str) -> str:
    """Return the gerund of a verb's base form: `tie` gives `tying`."""
    if _DOUBLING.fullmatch(verb):
        return f"{verb}{verb[-1]}ing"
    if verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and verb != "be" and not verb.endswith(("ee", "oe", "ye")):
        return f"{verb[:-1]}ing"
    return f"{verb}ing"


def third_person_of(verb: str) -> str:
    """Return the form of a verb after "it": `carry` gives `carries`."""
    if verb.endswith("y") and verb[-2] not in "aeou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"


GERUNDS = frozenset(map(gerund_of, VERBS))
