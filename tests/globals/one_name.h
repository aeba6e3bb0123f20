// A global of which each object that uses it has a definition.
#pragma once
template <class T>
struct One {
  static T values[80000];
};
template <class T>
T One<T>::values[80000] = {11, 12};
