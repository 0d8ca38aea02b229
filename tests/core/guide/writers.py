"""What pipelines of the guide call."""


def process_row(row): ...


def foreach_batch_function(df, batch_id): ...


class ForeachWriter:
    def process(self, row): ...
