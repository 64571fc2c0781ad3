"""The boxes of `reachable_boxes` for curved episodes, one at a time, in closed form."""

import torch


class Equations:
    """The expansions of x' = M x + b sin(N_a x) + ..., in closed form; ends of intervals are (D,) each."""

    def __init__(self, objective, choices):
        model, self.objective, self.choices = objective.surrogate, objective, choices
        self.states, self.taken = objective.trajectory.states, objective.observed.tolist()
        self.shared, self.inner, self.bent = model.shared, model.inner, model.bent
        self.third = objective.trajectory.constants[:, 2]

    def slope(self, time, action):
        inner = self.inner[action]
        return self.shared + self.bent * torch.cos(inner @ self.states[time]).unsqueeze(-1) * inner

    def bend(self, time, action):
        inner = self.inner[action]
        return self.bent * torch.sin(inner @ self.states[time]).abs() * inner.square().sum(-1)

    def allowed(self, time):
        return self.choices[time].nonzero()[:, 0].tolist()

    def effects(self, time, state=None):
        """F(c, a) - F(c, o) of the allowed actions a, at a state or at the observed one."""
        made = self.objective.trajectory
        here = self.states[time : time + 1] if state is None else state.unsqueeze(0)
        actions = torch.tensor(self.allowed(time), dtype=torch.long)
        return made.branch(here, time, actions)[0] - made.step(here, time, made.observed[time])

    def next(self, time, lower, upper, far=0.0, effects=None):
        """The ends under the observed action, or under any allowed one with given effects."""
        centre, radius = (lower + upper) / 2, (upper - lower) / 2
        size = torch.maximum(lower.abs(), upper.abs())
        length, own = float(size.norm()), self.slope(time, self.taken[time])
        every = [*self.allowed(time), self.taken[time]]
        bends = [self.bend(time, action) for action in (every if effects is not None else every[-1:])]
        slope = torch.stack(bends).amax(0) * (far + length / 2)
        cubic = self.third[time] * (far**2 / 2 + far * length / 2 + length**2 / 6)
        rest = length * (slope + cubic)
        if effects is None:
            middle, width = own @ centre, own.abs() @ radius + rest
        else:
            turns = torch.stack([self.slope(time, action) - own for action in every])
            lowest, highest = turns.amin(0), turns.amax(0)
            mean = own + (lowest + highest) / 2
            middle = (effects[0] + effects[1]) / 2 + mean @ centre
            width = (effects[1] - effects[0]) / 2 + mean.abs() @ radius
            width = width + (highest - lowest) / 2 @ size + rest
        return middle - width, middle + width

    def boxes(self, changes):
        zero = torch.zeros_like(self.states[0])
        reach = [(zero, zero)] * (changes + 1)
        found = [(zero, zero)]
        for time in range(len(self.states) - 1):
            kept = [self.next(time, *ends) for ends in reach]
            if changes and self.allowed(time):
                hull = self.effects(time).aminmax(dim=0)
                other = [self.next(time, *ends, effects=hull) for ends in reach[:-1]]
                for number, ends in enumerate(other, 1):
                    kept[number] = (
                        torch.minimum(kept[number][0], ends[0]),
                        torch.maximum(kept[number][1], ends[1]),
                    )
            reach = kept
            lower, upper = (torch.stack(ends) for ends in zip(*reach, strict=True))
            found.append((lower.amin(0), upper.amax(0)))
        return found
