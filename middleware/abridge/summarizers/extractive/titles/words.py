"""English verbs of which titles are made, and their gerunds. The list is closed."""

from __future__ import annotations

from types import MappingProxyType

from abridge.summarizers.extractive.titles.drafts import words_of

STRONG_VERBS = words_of(
    "abstract add adapt batch plug adjust align analyse analyze append apply approximate arrange"
    " assess assign avoid backfill balance benchmark blend block bound build bypass cache calculate"
    " calibrate categorize centralize change characterize clarify clean coerce collect combine"
    " compare compile compress compute configure confirm connect construct convert coordinate copy"
    " correct count craft create cross-check debug decide decode decouple deduce deduplicate defer"
    " define delay delete derive design detect determine diagnose differentiate disable distinguish"
    " divide downgrade draft draw drop edit eliminate enable encode enforce enumerate escape"
    " establish estimate evaluate examine expand explore extend extract factor factorize filter"
    " find fix flatten flush force format formulate generate graph group guard guess handle hide"
    " identify implement import improve infer initialize inline inspect install integrate interpret"
    " intersect invert investigate invoke isolate iterate justify limit link list load locate log"
    " lower map mark match maximize measure merge migrate minimize mock model modify monitor move"
    " multiply narrow normalize optimize order organize outline override parse patch pin place plan"
    " plot predict prevent prioritize profile propose prove prune query queue rank read rebuild"
    " reconcile reconsider reconstruct recover recreate redesign redirect reduce refactor refine"
    " refresh regenerate register reject release remove rename render reorder repair replace"
    " reproduce rerun reset resolve restore restrict restructure retrieve retry reuse reverse"
    " revert review revise rewrite round route run sample scale scan schedule search secure select"
    " separate serialize set sharpen shift shorten simplify simulate sketch skip solve sort specify"
    " split stabilize standardize stop store stream strengthen strip structure study subtract sum"
    " support swap switch tackle test throttle tie tighten time toggle trace track transform"
    " translate traverse trim tune uncover undo unify untangle update upgrade validate verify"
    " visualize weigh wire wrap"
)
"""Verbs that say what a stretch of reasoning is about."""

WEAK_VERBS = words_of(
    "accept account address adopt allow answer approach argue ask back break bring call"
    " cancel catch check choose cite clear close commit compose consider continue convey cook cool"
    " cover cross cut deal deliver deny describe detail discuss double draw elaborate emphasize"
    " ensure devise drink eat encourage end explain express favour favor figure fill fit follow"
    " gather grant grow guide help highlight hold illustrate include incorporate increase inform"
    " introduce invent join keep learn leave light limit look maintain make manage mention mix note"
    " observe offer open opt pair pass pause pay perform pick play ponder prefer prepare present"
    " preserve print produce protect provide pull push put quote raise recap recommend refer refuse"
    " reflect relate rely remind repeat report represent request require respect respond return"
    " reveal rule save scroll send serve share shape show sit soften start state step stick store"
    " submit substitute suggest summarise summarize surface take talk teach tell think transport"
    " treat try turn understand use view visit walk warn watch work write zoom"
)
"""Verbs of handling, speaking and answering: good for a title where there is no better."""

_DOUBLING = words_of(
    "begin bypass commit plug ship chop grab spot cut debug defer drop fit forget get hit infer let"
    " log map occur pin plan plot prefer put quit refer reset rerun run set shed sit skip split"
    " step stop strip submit sum swap trim win wrap tag run"
) - {"bypass"}
"""Verbs whose last consonant is doubled."""

VERBS = STRONG_VERBS | WEAK_VERBS


def gerund_of(verb: str) -> str:
    """Return the gerund of a verb's base form: `tie` gives `tying`."""
    if verb in _DOUBLING:
        return f"{verb}{verb[-1]}ing"
    if verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and verb != "be" and not verb.endswith(("ee", "oe", "ye")):
        return f"{verb[:-1]}ing"
    return f"{verb}ing"


GERUNDS = MappingProxyType({gerund_of(verb): verb for verb in VERBS})
"""Gerunds, and the verbs they are of."""
