"""The scripted model's reasoning and answers, written by hand: there is no AI in them."""

from __future__ import annotations

QUESTION = "Roast chicken, gratin, beans and a tart for six at 19:30, one oven: when do I start?"

THINKING = """\
The user wants to serve roast chicken, gratin, beans and a tart to six people at 19:30, and there \
is only one oven. I take it that the gratin is of potatoes and the tart of chocolate. So this is \
a scheduling problem: three of the four dishes need the oven, at different temperatures. I should \
work backwards from 19:30, because that is the only time that cannot move.

Let me put down how long each thing takes. A chicken for six weighs about 2 kg. The usual rule is \
20 minutes for each 500 g plus 20 minutes, at 190 °C, so 100 minutes in all. After that it rests \
for 20 minutes, and carving takes 10. A gratin takes 75 minutes, most of it under foil, the last \
20 uncovered and hotter, so that it browns. Beans take 6 minutes in boiling water. The tart takes \
15 minutes blind and 25 filled, at 170 °C, and then it has to cool for two hours, or the filling \
runs when it is cut.

What else could be scarce? I assume four rings and one pair of hands. The rings hardly matter, \
since only the beans and the gravy want one. The hands may, in the last half hour.

Start with the chicken, since it holds the oven longest. Dinner is at 19:30, and with 20 minutes \
of rest and 10 of carving the chicken must come out at 19:00. The chicken takes 100 minutes, so \
it goes in at 17:20. The oven needs a quarter of an hour to get hot, so it is switched on at \
17:05. A cold bird roasts unevenly, so it should leave the fridge an hour before, say at 16:20.

Therefore the chicken sets the pace, and the oven is taken from 17:05 to 19:00. Everything else \
that is baked has to fit around that, or share it.

Now the gratin. My first thought is to bake it after the chicken, but 75 minutes from 19:00 is \
20:15, which is far too late. Baking it first and keeping it warm is not good either: the edges \
would dry out, and it would need the oven again just to get hot. That leaves the time in between, \
when the chicken is in there.

Can they be in there together? The chicken wants 190 °C, and most gratins are baked at 170 or \
180. That is a small difference, the lower shelf is a little cooler anyway, and for most of the \
time there is foil on top. Do both fit? A chicken in its tin is some 20 cm high, a gratin dish 7, \
and there are about 35 between floor and grill. Tight, but yes. Therefore chicken and gratin \
share the oven at 190 °C, with the chicken above and the gratin below. The other way round, the \
chicken would keep the heat off the cream, and its own skin would stay pale, which would be a \
pity.

Backwards again: the gratin should stand for 10 minutes before it is served, so it comes out at \
19:20. 75 minutes before that is 18:05. From 18:05 to 19:00 it sits under foil below the chicken. \
At 19:00 the chicken comes out, the foil comes off, and the oven goes up to 200 °C for the last \
20 minutes, which are the ones in which it is meant to brown. So the gratin has the oven to \
itself exactly when it needs it.

Opening the door costs heat, too. An oven loses some 20 degrees each time and takes five minutes \
to recover. But the door opens only once while the chicken roasts, at 18:05, and the bird can be \
basted in the same moment, which somebody would do anyway. I do not have to add time for that.

Before that the potatoes are to be peeled and sliced, and for six people that takes about half an \
hour. From 17:30 to 18:05 there is nothing else to do, so that is the time for it. The slices do \
not have to wait in water, because they go straight into the dish with the cream.

Then the tart. Wait, I nearly baked it during dinner, in at 19:25 and out at 20:05, while \
everybody is at the table. But it has to cool for two hours, so nobody could cut it before 22:05. \
By then it is no dessert any more, it is breakfast.

So the tart must come first, before the chicken goes in. The oven heats up for the chicken from \
17:05, and so the tart should be out at 17:00. The tart takes 40 minutes, so it goes in at 16:20, \
and the oven is switched on at 16:05. The pastry takes 10 minutes to make and half an hour in the \
fridge, so the first job of the day is the pastry, at 15:40. Served at 20:30, the tart has had \
three and a half hours to cool, where two were needed.

Could it be made the day before? It could, and the day would be calmer. But the question is when \
to start what on one evening, and a tart is at its best on the day on which it was baked. The \
afternoon is empty otherwise, so there is no reason to move it.

The beans are the easy part, because they need a ring and not the oven. 6 minutes at the very \
end, so perhaps at 19:15. They cannot be done much earlier, because beans that stand for long \
turn grey, and nobody likes them then.

Let me check the last half hour, since that is where plans like this one fail. At 19:00 the \
chicken comes out and the gratin loses its foil. At 19:05 the water for the beans goes on, and \
the gravy starts in the roasting tin. At 19:15 the beans go in, at 19:20 the gratin comes out and \
the carving begins, and at 19:21 the beans are to be drained. Hmm, that is three jobs within a \
minute, for one pair of hands. Instead, the beans go in at 19:12. They are done at 19:18, two \
minutes before the gratin, and stay warm in their pot with butter and a lid on.

What if something is late? The chicken may be, because no two birds are alike. If it is not done \
at 19:00, it can roast for ten minutes more and rest for ten instead of twenty. The gratin does \
not mind: it stays under its foil for ten minutes more, comes out at 19:30, and is served without \
standing. So there is a reserve of ten minutes, and it is where it is needed.

One more look at the oven. The tart has it from 16:05 to 17:00, the chicken from 17:05 to 19:00, \
the gratin from 18:05 to 19:20. The only overlap is the one I planned, 18:05 to 19:00, when both \
are at 190 °C. Therefore one oven is enough, and nothing has to wait for it.

I'll answer with a timetable, earliest job first, and say in one line why the tart comes before \
everything else.
"""

ANSWER = """\
Bake the tart first: it needs two hours to cool, and from 17:05 the oven is taken.

15:40  make the pastry and chill it
16:05  oven to 170 °C
16:20  tart in (15 minutes blind, 25 filled); chicken out of the fridge
17:00  tart out; from 17:05 the oven heats to 190 °C
17:20  chicken in, on the upper shelf
17:30  peel and slice the potatoes, put the gratin together
18:05  gratin in, below the chicken, under foil
19:00  chicken out to rest; foil off the gratin; oven to 200 °C
19:05  water on for the beans; gravy in the roasting tin
19:12  beans in; drain them at 19:18, butter, lid on
19:20  gratin out to stand; carve
19:30  dinner, and the tart at 20:30
"""

NOTE = "This is a scripted model, no AI. It knows one question, and here is what it says to that."

LATER_THINKING = """\
This conversation has gone on past the one question that I have a script for. I am no AI, so I \
cannot think of anything new. I should say so, in a sentence, and say what to do instead.
"""

LATER_ANSWER = (
    "I am a scripted model, no AI, and that was all of my script. Put Abridge before a model of "
    "your own to go on."
)
