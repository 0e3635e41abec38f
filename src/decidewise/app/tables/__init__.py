"""From a table and a problem to decisions: what the commands `compare`, `fit`, `predict` and `decide` do.

- `raw_values`, `features`: the values of columns, and what looks wrong; columns with categories, dates and gaps as
  numeric features
- `columns`, `layouts`, `samples`: which columns are what; a wide or a long table as samples, with their problem
- `table_model`: a fitted model with the preparation of its features, which predicts from a table
- `compare_table`: which model decides best on a frame; the commands do the same for files
- `comparison`, `savings`, `health`: which model decides best, where the savings come from, and the state of the data
- `headline`, `page`: the result in words, and as one page
- `blocks`, `fitting`, `new_rows`: the same for a table that is read block by block
- `example`: a small working example
"""
