// The definition of a global that only other objects use.
int of_other[80000] = {[7] = 77};
