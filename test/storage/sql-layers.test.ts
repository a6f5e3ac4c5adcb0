/** The database functions under the layers of the code: a function calls its own room and those below. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const root = 'src/storage/sql/functions'

/** Rooms by layer, the lowest first. Rooms of one layer do not call each other, but for those of the books. */
const layers: readonly (readonly string[])[] = [
  ['integrity', 'limits', 'outbox'],
  ['ledger'],
  ['approvals', 'debts', 'reviews', 'spending'],
  ['identity', 'compliance'],
  ['wallets'],
  ['buying', 'cards', 'investing', 'selling', 'swaps'],
  ['decisions', 'events', 'journal', 'recourse', 'requests'],
  ['kernel'],
]
const books = 2

/** The functions that write money: each of these tables has one. */
const writers = { posting: ['ledger_record'], balance: ['balance_change'] }

const functions = readdirSync(root).flatMap((room) =>
  readdirSync(`${root}/${room}`).map((file) => ({
    name: file.replace('.sql', ''),
    room,
    text: readFileSync(`${root}/${room}/${file}`, 'utf8').replaceAll(/--[^\n]*/g, ''),
  })),
)
const findLayer = (room: string) => layers.findIndex((rooms) => rooms.includes(room))

describe('the database functions', () => {
  it('are each in a room of a layer', () => {
    expect([...new Set(functions.map(({ room }) => room))].sort()).toEqual([...layers.flat()].sort())
  })

  it('call downwards only', () => {
    const strays = functions.flatMap((caller) =>
      functions
        .filter(({ name, room }) => room !== caller.room && new RegExp(`\\b${name}\\s*\\(`).test(caller.text))
        .filter(({ room }) => {
          const [from, to] = [findLayer(caller.room), findLayer(room)]
          return to > from || (to === from && from !== books)
        })
        .map(({ name, room }) => `${caller.name} (${caller.room}) → ${name} (${room})`),
    )
    expect(strays.sort()).toEqual([])
  })

  it.each(Object.entries(writers))('write the table %s in one place', (table, names) => {
    const write = new RegExp(`\\b(insert into|update|delete from) ${table}\\b`)
    expect(functions.flatMap(({ name, text }) => (write.test(text) ? [name] : [])).sort()).toEqual(names)
  })
})
