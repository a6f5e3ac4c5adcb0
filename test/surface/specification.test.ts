/** The tables that the journey tries are complete, wherever the specification's text lies beside the checkout. */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  errors,
  events,
  type Field,
  limits,
  requestFields,
  responseFields,
  routes,
  schemes,
  states,
} from './specification.ts'

const TEXT = '../shared/spec.md'

interface Row {
  readonly section: string
  readonly cells: readonly string[]
}

/** Rows of the tables in a Markdown text, without their heads, by the number of the heading above. */
function readRows(markdown: string): readonly Row[] {
  const rows: Row[] = []
  let section = ''
  let isHead = true
  for (const line of markdown.split('\n')) {
    section = /^#+ ([\d.]*\d)/.exec(line)?.[1] ?? section
    if (!line.startsWith('|')) isHead = true
    else if (/^\|[-|\s:]+\|$/.test(line)) isHead = false
    else if (!isHead) rows.push({ section, cells: line.split(/ *\| */).slice(1, -1) })
  }
  return rows
}

describe.skipIf(!existsSync(TEXT))('the table of the specification', () => {
  const rows = existsSync(TEXT) ? readRows(readFileSync(TEXT, 'utf8')) : []
  const listRows = (...sections: string[]) => rows.filter(({ section }) => sections.includes(section))

  it('has each field, with its type and its values', () => {
    const stated = listRows('2.1', '2.2', '2.3', '2.4', '2.5', '2.6', '2.7', '2.8').map(
      ({ section, cells: [name, type, , last = ''] }) => [section, name, type, last],
    )
    const known = [...responseFields, ...requestFields]
    expect(stated.map(([section, name, type]) => `${section} ${name}: ${type}`)).toEqual(
      known.map(({ section, name, type }) => `${section} ${name}: ${type}`),
    )
    const required = listRows('2.3', '2.4', '2.5', '2.6', '2.7', '2.8').map(
      ({ cells: [name, , isRequired] }) => [name, isRequired === 'yes' || name === 'toToken'],
    )
    expect(required).toEqual(requestFields.map(({ name, isRequired }) => [name, isRequired]))
    const values = ({ section, name, allowed = [] }: Field) => [section, name, allowed.join(', ')]
    const listed = rows.flatMap(({ section, cells }) =>
      // The values stand in the last cell, in a table with that column.
      ['2.2', '2.3', '2.5', '2.7'].includes(section) ? [[section, cells[0], cells.at(-1)]] : [],
    )
    const tabled = known.filter(({ section }) => ['2.2', '2.3', '2.5', '2.7'].includes(section))
    expect(listed).toEqual(tabled.map(values))
  })

  it('has each route', () => {
    const stated = listRows('4.1', '4.2').map(
      ({ section, cells: [method, path] }) => `${section} ${method} ${path}`,
    )
    expect(stated).toEqual(routes.map(({ section, route }) => `${section} ${route}`))
  })

  it('has each limit, with its number', () => {
    const stated = listRows('8').map(({ cells: [scope = '', limit = ''] }) => [
      scope,
      /(\d+)(?: requests)? per minute/.exec(limit)?.[1],
    ])
    expect(stated).toEqual(
      limits.map(({ scope, perMinute }) => [expect.stringMatching(`^${scope}`), perMinute?.toString()]),
    )
  })

  it.each([
    ['3', states],
    ['5.1', schemes],
    ['6', events],
    ['7', errors],
  ] as const)('has each row of section %s', (section, names) => {
    const stated = listRows(section).map(({ cells: [first] }) => first)
    expect(stated).toEqual(names.map((name) => expect.stringMatching(`^${name}`)))
  })

  it('leaves out no other table', () => {
    const tried = [...responseFields, ...requestFields, ...routes].map(({ section }) => section)
    expect([...new Set(rows.map(({ section }) => section))].sort()).toEqual(
      [...new Set([...tried, '3', '5.1', '6', '7', '8'])].sort(),
    )
  })
})
