int of_other[80000] = {[7] = 77};
