/** The money functions on a PostgreSQL whose sessions a seed steps: see conductor.ts. STEPPED_SEEDS runs more than 12 seeds. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { seededBy } from '../seeded.ts'
import { cardScenes } from './card-scenes.ts'
import { type Conductor, openConductor, type Run } from './conductor.ts'
import { defects } from './defects.ts'
import { railScenes } from './rail-scenes.ts'
import { findViolation, type Scene, spendingScenes } from './scenes.ts'

const SEEDS = Number(process.env.STEPPED_SEEDS ?? 12)
const TIMEOUT_MS = 30_000 + SEEDS * 5_000

/** Seeds within which a defect must be found. */
const DEFECT_SEEDS = 60

const scenes = { ...spendingScenes, ...cardScenes, ...railScenes }

describe.skipIf(testServerUrl === undefined)('money in stepped sessions', () => {
  let conductor: Conductor
  let drop = async () => {}
  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    conductor = await openConductor(created)
  })
  afterAll(async () => {
    await conductor?.close()
    await drop()
  })

  /** Plays a scene once. @returns the run, and how it violates the scene. */
  const play = async (scene: Scene, seed: number): Promise<Run & { violation: string | null }> => {
    const { database } = conductor
    await conductor.reset()
    const prepared = await scene.prepare(database)
    const run = await conductor.run(prepared.tasks, seededBy(`order ${seed}`))
    return { ...run, violation: await findViolation(database, prepared, run) }
  }

  for (const [name, scene] of Object.entries(scenes))
    it(`${name}: ${scene.claim}`, { timeout: TIMEOUT_MS }, async () => {
      for (let seed = 1; seed <= SEEDS; seed += 1) {
        const { violation, trace } = await play(scene, seed)
        expect(violation, `seed ${seed}:\n${trace.join('\n')}`).toBeNull()
      }
    })

  it('takes equal steps for equal seeds', { timeout: TIMEOUT_MS }, async () => {
    for (const scene of Object.values(scenes)) {
      const traces = [await play(scene, 1), await play(scene, 1), await play(scene, 2)].map(
        ({ trace }) => trace,
      )
      expect(traces[1]).toEqual(traces[0])
      expect(traces[2]).not.toEqual(traces[0])
    }
  })

  for (const { name, allows, scene, edits } of defects)
    it(`${scene} finds that ${name}: ${allows}`, { timeout: TIMEOUT_MS }, async ({ annotate }) => {
      const restore = await conductor.edit(edits)
      let found: string | undefined
      try {
        for (let seed = 1; seed <= DEFECT_SEEDS && found === undefined; seed += 1) {
          const { violation } = await play(scenes[scene], seed)
          if (violation !== null) found = `seed ${seed}: ${violation}`
        }
      } finally {
        await restore()
      }
      await annotate(found ?? 'not found')
      expect(found).toBeDefined()
    })
})
