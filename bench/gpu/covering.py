# SPDX-License-Identifier: Apache-2.0
"""Rows of values, one of each factor: all combinations of some factors, and every pair of values of any two."""

import itertools
import random


def pairs_of(row):
    """Every two of a row's values with the names of their factors, the names in the row's order."""
    return set(itertools.combinations(row.items(), 2))


def all_pairs(factors):
    return {
        ((one, a), (other, b))
        for one, other in itertools.combinations(factors, 2)
        for a, b in itertools.product(factors[one], factors[other])
    }


class Covering:
    """`whole` and `others` are {factor: values}. A pair counts as covered by a row that `counts`, such as one that is not
    refused. It is looked for among rows with the first value of each of `others`, or of all but one."""

    def __init__(self, whole, others, counts=lambda row: True, seed=1):
        self.factors = {**whole, **others}
        self.others = list(others)
        self.counts = counts
        self.random = random.Random(seed)
        self.uncovered = all_pairs(self.factors)
        self.impossible = set()  # pairs of rows that do not count, whatever the other values are
        self.combinations = [dict(zip(whole, values)) for values in itertools.product(*whole.values())]
        self.rows = []

    def make(self):
        for combination in self.combinations:
            self.add(self.improved(self.completed(combination), self.others))
        for pair in sorted(self.uncovered, key=str):
            if pair in self.uncovered:
                self.cover(pair)
        return self.rows

    def completed(self, values):
        return {factor: values.get(factor, known[0]) for factor, known in self.factors.items()}

    def gain(self, row):
        return len(pairs_of(row) & self.uncovered)

    def improved(self, row, free):
        """With other values of the factors `free`, one after the other in random order, for as many new pairs as can be."""
        if not self.counts(row):
            return {**row, **{factor: self.random.choice(self.factors[factor]) for factor in free}}
        for factor in self.random.sample(free, len(free)):
            tries = [{**row, factor: value} for value in self.random.sample(self.factors[factor], len(self.factors[factor]))]
            row = max((attempt for attempt in tries if self.counts(attempt)), key=self.gain)
        return row

    def cover(self, pair):
        """A row with this pair; one that counts if there is one."""
        fixed = dict(pair)
        free = [factor for factor in self.factors if factor not in fixed]
        good = [start for start in self.starts(fixed) if self.counts(start)]
        if good:
            self.add(self.improved(self.random.choice(good), free))
        else:
            self.impossible.add(pair)
            self.uncovered.discard(pair)
            if not any(pair in pairs_of(row) for row in self.rows):
                self.add(self.completed({**self.random.choice(self.combinations), **fixed}))

    def starts(self, fixed):
        for combination in self.combinations:
            start = self.completed({**combination, **fixed})
            yield start
            for factor in self.others:
                if factor not in fixed:
                    yield from ({**start, factor: value} for value in self.factors[factor][1:])

    def add(self, row):
        self.rows.append(row)
        if self.counts(row):
            self.uncovered -= pairs_of(row)
