// A library that allocates for the program, and frees what the program has allocated.
long* made() { return new long(7); }
void given(long* word) { delete word; }
