import type { ControllerTrouble, Level, Trouble } from '../../pages/admin/health/judge';

interface Told {
  readonly what: (controller: string) => string;
  readonly advice: string;
}

export const health = {
  title: 'Health',
  lead: 'How the server, its controllers and its store are.',
  verdict: 'How it is',
  well: 'Everything is well.',
  wants: (count: number) => (count === 1 ? 'One thing needs attention.' : `${count} things need attention.`),
  level: { good: 'Well', warn: 'Look at it', bad: 'Wrong' } satisfies Record<Level, string> as Record<Level, string>,
  download: 'Download the report',
  server: 'Server',
  version: 'Berth',
  runsFor: 'Running for',
  clock: 'Its clock',
  events: 'Newest event',
  unnumbered: 'Longest wait for a number',
  store: 'Store',
  engine: 'Database',
  size: 'Size',
  schema: 'Schema step',
  pending: 'still to come:',
  disk: 'Disk',
  free: (free: string, total: string) => `${free} of ${total} free`,
  elsewhere: 'on another machine',
  loops: 'Controllers',
  holder: 'Run by',
  nobody: 'nobody',
  lastRound: 'Last round',
  notHere: 'on another server',
  ago: (length: string) => `${length} ago`,
  behind: 'Behind by',
  seconds: (count: string) => `${count} s`,
  readAt: (time: string, seconds: number) => `Read at ${time}, again every ${seconds} seconds.`,
  shell: 'The same on the command line:',
  controllers: {
    sequencer: 'numbers events and chains the audit log',
    reservations: 'starts and ends bookings, closes windows',
    waitlist: 'gives room to those who wait',
    notifier: 'tells people what concerns them, and reminds them',
    sweeper: 'clears expired sessions and keys',
    closures: 'reads the calendars of closed days',
    environments: 'makes environments ready, and clears away what is left of them',
  },
  trouble: {
    disk_full: { what: () => 'The disk is nearly full.', advice: 'Make room now: old logs and backups first. A full disk stops every change, and nothing is lost.' },
    disk_low: { what: () => 'The disk is filling up.', advice: 'Make room, or give the data directory a larger disk.' },
    no_sandbox: {
      what: () => 'Runs have no sandbox, so each run sees this machine’s files, processes and network.',
      advice: 'Install bubblewrap and restart the server. While several people have accounts, it runs nobody’s work unless unsafe_shared_user is set.',
    },
    server_user: {
      what: () => 'Runs have the server’s own user, so only the sandbox keeps a run from the server’s files.',
      advice: 'Start the server as root. While several people have accounts, it runs nobody’s work unless unsafe_shared_user is set.',
    },
    no_sandbox_server_user: {
      what: () => 'Runs have the server’s own user and no sandbox, so each run can read and change everything that the server can.',
      advice: 'Install bubblewrap and start the server as root. While several people have accounts, it runs nobody’s work unless unsafe_shared_user is set.',
    },
    schema: { what: () => 'The store is older than this Berth.', advice: 'Restart the server; it brings its schema up to date.' },
    sequencer: { what: () => 'Events wait for their number.', advice: 'Pages and notifications lag behind. Look at the server’s log for the controller sequencer, and restart the server if it says nothing.' },
    clock: { what: () => 'The server’s clock and yours differ by more than a minute.', advice: 'Set both by a time server; bookings follow the server’s.' },
    never: { what: (name) => `${name} was never run.`, advice: 'Start a server; each runs all controllers that no other does.' },
    stuck: { what: (name) => `A round of ${name} did not end in its time, so this server left it to another.`, advice: 'Look at this server’s log and at its machine’s disks. Restart it once another server runs the controller.' },
    late: { what: (name) => `${name} is behind with something due.`, advice: 'Look at the log of the server that runs it. If it hangs, restart that server; another takes over, or it goes on by itself.' },
    stale: { what: (name) => `${name} has not had a round here for long.`, advice: 'Another server may run it now; if there is none, look at the log.' },
  } satisfies Record<Trouble | ControllerTrouble, Told> as Record<Trouble | ControllerTrouble, Told>,
};
