/** Makes a value when it is first asked for, and keeps it: a start does not wait for what few requests need. */
export function lazy<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
