/** Leaves the texts of `.describe(…)` unmutated: they are documentation, which nothing decides by. A test sees to it that they are there. */
const descriptions = {
  shouldIgnore(path) {
    const { callee } = path.parent ?? {}
    const isText = path.isStringLiteral() && path.parentPath.isCallExpression()
    return isText && callee.property?.name === 'describe' ? 'the text of a description' : undefined
  },
}

export const strykerPlugins = [{ kind: 'Ignore', name: 'descriptions', value: descriptions }]
