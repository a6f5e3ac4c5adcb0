/** Push messages by two keys, while browsers subscribe anew. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { silentLog } from '../../../src/core/base/log.ts'
import { fetchPublic } from '../../../src/providers/public-fetch.ts'
import { createWebPush } from '../../../src/providers/push/web-push.ts'
import { newBrowser, startPushService, verifyVapid } from '../../records/notifications/push-service.ts'

let service: Awaited<ReturnType<typeof startPushService>>
beforeAll(async () => {
  service = await startPushService()
})
afterAll(() => service.close())
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const message = { payload: '{"title":"hello"}', topic: 'a', lifetimeSeconds: 60 }
const pushWith = (current: KeyObject, previous: KeyObject | null = null) =>
  createWebPush({
    keys: { current, previous },
    ...{ origin: 'https://bursar.example', mode: 'sandbox', publicFetch: fetchPublic, log: silentLog },
  })

it('sends by the previous key to a browser that subscribed with it, and by the current one alone afterwards', async () => {
  const [old, next] = [newKey(), newKey()]
  const { publicKey } = pushWith(old)
  service.service.key = publicKey
  const { subscription, read } = newBrowser(`${service.origin}/1`)
  const rotating = pushWith(next, old)
  expect(rotating.publicKey).not.toBe(publicKey)
  expect(await rotating.send(subscription, message)).toBe('sent')
  const [refused, sent] = service.received.splice(0)
  if (refused === undefined || sent === undefined) throw new Error('there were not two requests')
  await verifyVapid(refused, rotating.publicKey, service.origin)
  await verifyVapid(sent, publicKey, service.origin)
  expect(read(sent)).toEqual({ title: 'hello' })
  expect(await pushWith(next).send(subscription, message)).toBe('failed')
  service.service.key = rotating.publicKey
  service.received.splice(0)
  expect(await rotating.send(subscription, message)).toBe('sent')
  expect(service.received).toHaveLength(1)
})
