import { expect, it } from 'vitest'
import { formatCsv } from '../../../src/server/http/document.ts'

it('writes a header, CRLF, and quotes cells that need it', () => {
  const rows = [
    { id: 'a', note: 'plain' },
    { id: 'b', note: 'a "word", two\nlines' },
    { id: 'c', note: null },
  ]
  expect(formatCsv(['id', 'note'], rows)).toBe('id,note\r\na,plain\r\nb,"a ""word"", two\nlines"\r\nc,\r\n')
  expect(formatCsv(['id', 'note'], [])).toBe('id,note\r\n')
})

it('neutralizes cells that could run as formulas', () => {
  const texts = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '\uFF1D1', '=HYPERLINK("x","y")']
  const cells = texts.map((text) => formatCsv(['a'], [{ a: text }]).split('a\r\n')[1])
  expect(cells).toEqual([
    "'=1+1\r\n",
    "'+1\r\n",
    "'-1\r\n",
    "'@SUM(A1)\r\n",
    "'\t=1\r\n",
    '"\'\r=1"\r\n',
    '"\'\n=1"\r\n',
    "'\uFF1D1\r\n",
    '"\'=HYPERLINK(""x"",""y"")"\r\n',
  ])
})

it('writes a member of an object as a column', () => {
  expect(formatCsv(['object.id', 'object.no'], [{ object: { id: 'a' } }, {}])).toBe(
    'object.id,object.no\r\na,\r\n,\r\n',
  )
})
