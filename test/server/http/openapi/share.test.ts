import { describe, expect, it } from 'vitest'
import { shareMembers, shareRepeated } from '../../../../src/server/http/openapi/share.ts'

const text = { type: 'string' }
const open = (...names: string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, text])),
  required: names,
})

describe('the members that shapes share', () => {
  it('are written once: an answer extends the largest shape that it contains, also inside another', () => {
    const schemas = {
      Small: open('a', 'b', 'c'),
      Large: open('a', 'b', 'c', 'd'),
      Answer: { ...open('a', 'b', 'c', 'd', 'e'), description: 'Larger.' },
      Page: { type: 'object', properties: { list: { type: 'array', items: open('a', 'b', 'c', 'x') } } },
    }
    const shared = shareMembers(schemas)
    expect(shared.Answer).toEqual({
      description: 'Larger.',
      allOf: [{ $ref: '#/components/schemas/Large' }, open('e')],
    })
    expect(shared.Page).toMatchObject({
      properties: { list: { items: { allOf: [{ $ref: '#/components/schemas/Small' }, open('x')] } } },
    })
    expect(shared.Small).toEqual(schemas.Small)
  })

  it('stay in a closed shape, a shape with an optional member, and an equal one', () => {
    const schemas = {
      Base: open('a', 'b', 'c'),
      Equal: open('a', 'b', 'c'),
      Closed: { ...open('a', 'b', 'c', 'd'), additionalProperties: false },
      Optional: { ...open('a', 'b', 'c', 'd'), required: ['a', 'b'] },
    }
    expect(shareMembers(schemas)).toEqual(schemas)
  })

  it('members of variants are an envelope around them', () => {
    const one = open('id', 'at', 'by', 'amount')
    const other = open('id', 'at', 'by', 'reason')
    expect(shareMembers({ Event: { description: 'An event.', oneOf: [one, other] } })).toEqual({
      EventEnvelope: open('id', 'at', 'by'),
      Event: {
        description: 'An event.',
        allOf: [{ $ref: '#/components/schemas/EventEnvelope' }, { oneOf: [open('amount'), open('reason')] }],
      },
    })
  })
})

describe('what operations repeat', () => {
  const limit = (description: string) => ({ name: 'limit', in: 'query', description })
  const operation = (operationId: string, description: string, response: object) => ({
    operationId,
    parameters: [limit(description)],
    responses: { 400: response },
  })
  const [bad, gone] = [{ description: 'bad' }, { description: 'gone' }]

  it('becomes a component, named after its room if another has the name; a single use stays', () => {
    const { paths, parameters, responses } = shareRepeated(
      {
        '/a': { get: operation('cards.list', 'usual', bad), post: operation('cards.find', 'usual', bad) },
        '/b': { get: operation('notes.list', 'usual', gone), post: operation('events.list', 'other', bad) },
        '/c': { get: operation('events.find', 'other', bad), post: operation('events.last', 'single', bad) },
      },
      new Map([bad, gone].map((one) => [JSON.stringify(one), one.description])),
    )
    expect(parameters).toEqual({ limit: limit('usual'), 'limit.events': limit('other') })
    expect(responses).toEqual({ bad })
    expect(paths['/b']?.post).toMatchObject({
      parameters: [{ $ref: '#/components/parameters/limit.events' }],
      responses: { 400: { $ref: '#/components/responses/bad' } },
    })
    expect(paths['/b']?.get).toMatchObject({ responses: { 400: gone } })
    expect(paths['/c']?.post).toMatchObject({ parameters: [limit('single')] })
  })
})
