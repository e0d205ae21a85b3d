"""What a submit goes through before it is a row: templates, the payload contract, keys, frozen fields."""
